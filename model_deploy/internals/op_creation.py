"""Intercepts the creation of ops; seen in TensorFlow 2.16 to 2.21."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf
from tensorflow.python.eager import record

from model_deploy.internals import custom_gradients
from model_deploy.internals.replacing import Replace, Replacements, temporarily


class NewOp(NamedTuple):
    """An op that is about to be made.

    Attributes:
      type: type of the op, such as `Conv2D`.
      name: full name of the op.
      inputs: tensors of any shapes.
      attrs: attributes of the op, as `tf.AttrValue`s.
      op_def: the `OpDef` of the type.
      make: makes an op of the same type from (name, inputs, attrs), to be called by the rule; rules
        of inner blocks apply to it.
    """

    type: str
    name: str
    inputs: Sequence[Any]
    attrs: Mapping[str, Any]
    op_def: Any
    make: Callable[[str, Sequence[Any], Mapping[str, Any]], Any]


# Makes an op with outputs of the same dtypes and shapes in place of a new one, or returns None.
Rule = Callable[[NewOp], Any]

_rules: contextvars.ContextVar[tuple[Rule, ...]] = contextvars.ContextVar("rules", default=())


@contextlib.contextmanager
def making_ops_by(rule: Rule) -> Iterator[None]:
    """Lets a rule replace the ops that are made in a `with` block, inside of functions as well.

    The rule is called for each op; it returns the op that takes its place, or None to leave it
    alone.  Ops that it makes go to the rules of inner blocks, not to itself.  Other threads are not
    affected.

    Wraps `Graph._create_op_internal`, which all of TensorFlow's functions call, in loops and
    conditions as well.  `is_custom_gradient_input` works in the block.

    Args:
      rule: see `Rule`.
    """
    with _replacements.in_place(_rules, (*_rules.get(), rule)):
        yield


def tape_records() -> bool:
    """Whether a `tf.GradientTape` may record the ops that are made now.

    Wraps `record.could_possibly_record`.
    """
    return bool(record.could_possibly_record())


_create_op = tf.Graph._create_op_internal


def _create_by_rules(  # noqa: PLR0917 - the arguments of the method that it replaces
    graph: Any,
    op_type: str,
    inputs: Sequence[Any],
    dtypes: Any = None,
    input_types: Any = None,
    name: str | None = None,
    attrs: Mapping[str, Any] | None = None,
    op_def: Any = None,
    compute_device: bool = True,
) -> Any:
    """Replaces `Graph._create_op_internal`: asks the rules of all blocks, the outermost first."""
    rules = _rules.get()
    if rules and op_def is not None and name is not None and name.endswith("/"):

        def make(its_name: str, its_inputs: Sequence[Any], its_attrs: Mapping[str, Any]) -> Any:
            return _create_by_rules(
                graph, op_type, its_inputs, None, None, f"{its_name}/", its_attrs, op_def
            )

        new = NewOp(op_type, name[:-1], inputs, attrs or {}, op_def, make)
        for i, rule in enumerate(rules):
            with temporarily(_rules, rules[i + 1 :]):
                op = rule(new)
            if op is not None:
                return op
    return _create_op(
        graph, op_type, inputs, dtypes, input_types, name, attrs, op_def, compute_device
    )


def _replace_all(replace: Replace) -> None:
    replace(tf.Graph, "_create_op_internal", lambda original: _create_by_rules)
    custom_gradients.replace_decorator(replace)


_replacements = Replacements(_replace_all)
