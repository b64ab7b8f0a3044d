"""Whether TensorFlow would run eagerly outside of functions, found faster; 2.16 to 2.21."""

import contextlib
import contextvars
import functools
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import ops

from model_deploy.internals.replacing import Replace, Replacements

_is_open = contextvars.ContextVar("variables are compared faster", default=False)


def comparing_variables_faster() -> contextlib.AbstractContextManager[None]:
    """A `with` block in which a variable of a graph is hashed and compared in less time.

    At each hash and each comparison of a variable TensorFlow asks for the mode outside of
    functions, and to find it enters that graph and leaves it again.  For each new weight,
    `tf.layers`, and with it TF-Slim, makes a set of all variables of the graph, so networks of
    hundreds of layers take twice as long to build.  The answer is the same: a graph that has been
    entered is never eager.

    Overrides `ops.executing_eagerly_outside_functions`.
    """
    return _replacements.in_place(_is_open, True)


def _replace_all(replace: Replace) -> None:
    replace(ops, "executing_eagerly_outside_functions", _without_entering)


def _without_entering(original: Any) -> Any:
    @functools.wraps(original)
    def executes_eagerly_outside() -> bool:
        if not context.executing_eagerly():
            entered = context.context().context_switches.stack
            if not entered or _is_graph(entered[-1]):
                return False
        return bool(original())

    return executes_eagerly_outside


def _is_graph(entered: Any) -> bool:
    """Whether a graph that is of no function was entered last."""
    owner = getattr(entered.enter_context_fn, "__self__", None)
    return isinstance(owner, ops.Graph) and not entered.is_building_function


_replacements = Replacements(_replace_all)
