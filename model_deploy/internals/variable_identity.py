"""Variables of graphs are hashed and compared by what they are, at once; 2.16 to 2.21."""

import contextlib
import contextvars
import functools
import operator
from collections.abc import Callable
from typing import Any

from tensorflow.python.ops import variables

from model_deploy.internals.replacing import Replace, Replacements

_is_open = contextvars.ContextVar("variables are compared faster", default=False)


def comparing_variables_faster() -> contextlib.AbstractContextManager[None]:
    """A `with` block in which a variable of a graph is hashed and compared in less time.

    In a graph a variable equals itself alone, and its hash is its `id`.  Before TensorFlow says so,
    it asks at each hash and each comparison for the mode outside of functions, and to find it
    enters that graph and leaves it again.  For each new weight, `tf.layers`, and with it TF-Slim,
    makes a set of all variables of the graph, so networks of hundreds of layers take twice as long
    to build.  Variables of eager programs are left alone.

    Overrides `Variable.__hash__`, `Variable.__eq__` and `Variable.__ne__`.  Wraps
    `Variable._in_graph_mode`.
    """
    return _replacements.in_place(_is_open, True)


def _replace_all(replace: Replace) -> None:
    for name, identity in (
        ("__hash__", id),
        ("__eq__", operator.is_),
        ("__ne__", operator.is_not),
    ):
        replace(variables.Variable, name, functools.partial(_of_graphs, identity))


def _of_graphs(identity: Callable[..., Any], original: Any) -> Any:
    """A method that is `identity` for variables of graphs, and the original one for others."""

    @functools.wraps(original)
    def compared(variable: Any, *other: Any) -> Any:
        # Reference variables do not have it; programs that have these compare at once.
        if getattr(variable, "_in_graph_mode", False):
            return identity(variable, *other)
        return original(variable, *other)

    return compared


_replacements = Replacements(_replace_all)
