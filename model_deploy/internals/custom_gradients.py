"""Inputs and lifetime of `tf.custom_gradient` functions; seen in TensorFlow 2.16 to 2.21.

TensorFlow searches for variables from a function's results back to its inputs, so no op of the
function may take a value from before the inputs.
"""

import contextvars
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import custom_gradient

from model_deploy.internals.replacing import Replace, temporarily

_MARK = "_gradient_op_type"
_inputs: contextvars.ContextVar[frozenset[Any]] = contextvars.ContextVar(
    "inputs of custom gradients", default=frozenset()
)


def is_custom_gradient_input(tensor: Any) -> bool:
    """Whether a tensor is an input of a `tf.custom_gradient` function that is being called.

    Works in a block of `making_ops_by`, for nested functions as well.

    Wraps `custom_gradient._graph_mode_decorator`.

    Args:
      tensor: of any shape.
    """
    return tensor.ref() in _inputs.get()


def forget_custom_gradients(graph: Any = None) -> None:
    """Lets graphs go whose gradients nobody asks for any more.

    TensorFlow keeps the function of each custom gradient, as of `tf.nn.silu`, for ever, and with
    it the graph, its variables and constants.

    Wraps `ops.gradient_registry._registry`.

    Args:
      graph: the `tf.Graph`; None for all graphs.
    """
    known = ops.gradient_registry._registry
    names = [name for name in known if name.startswith("CustomGradient-")]
    if graph is not None:
        types = {op.node_def.attr[_MARK].s.decode() for op in _marked(graph)}
        names = [name for name in names if name in types]
    for name in names:
        del known[name]


def _marked(graph: Any) -> list[Any]:
    return [
        op for op in graph.get_operations() if op.type == "IdentityN" and _MARK in op.node_def.attr
    ]


def replace_decorator(replace: Replace) -> None:
    """Replaces the decorator by one that notes the inputs of custom-gradient functions.

    Args:
      replace: the function that `Replacements` passes on.
    """
    replace(custom_gradient, "_graph_mode_decorator", _noting)


def _noting(original: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the decorator with a function that notes its inputs while it is called."""

    def _graph_mode_decorator(
        f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        @functools.wraps(f)
        def called(*inputs: Any) -> Any:
            given = tf.nest.flatten(inputs, expand_composites=True)
            with temporarily(_inputs, _inputs.get().union(each.ref() for each in given)):
                return f(*inputs)

        return original(called, args, kwargs)

    return _graph_mode_decorator
