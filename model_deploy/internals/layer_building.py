"""Layers of TensorFlow 1 and TF-Slim are built in less time; seen in 2.16 and 2.21."""

import contextlib
import contextvars
import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

from tensorflow.python.ops import variables

from model_deploy.internals.replacing import Replace, Replacements

_is_open = contextvars.ContextVar("layers are built faster", default=False)
# The modules of TensorFlow's own old Keras and of tf-keras that choose the base of layers.
_CHOOSE_BASES = ("tensorflow.python.keras.utils.version_utils", "tf_keras.src.utils.version_utils")


def building_layers_faster() -> contextlib.AbstractContextManager[None]:
    """A `with` block in which `tf.layers`, and with it TF-Slim, builds layers in less time.

    For each new weight a layer makes a set of all variables of the graph.  In a graph a variable
    equals itself alone, and its hash is its `id`; before TensorFlow says so, it asks at each hash
    and each comparison for the mode outside of functions, and to find it enters that graph and
    leaves it again.  In the block it says so at once.  Variables of eager programs are left alone.

    For each new layer its class gets its base classes anew, those of graph mode or of eager mode,
    also where they are the same as before; Python then forgets what it has looked up in any class.
    In the block a class with the right bases is left as it is.

    Overrides `Variable.__hash__`, `Variable.__eq__` and `Variable.__ne__`.  Wraps
    `Variable._in_graph_mode` and `version_utils.swap_class`.
    """
    return _replacements.in_place(_is_open, True)


def _replace_all(replace: Replace) -> None:
    for name, identity in (
        ("__hash__", id),
        ("__eq__", operator.is_),
        ("__ne__", operator.is_not),
    ):
        replace(variables.Variable, name, functools.partial(_of_graphs, identity))


def _replace_in(name: str, replace: Replace) -> None:
    replace(sys.modules[name], "swap_class", _where_bases_differ)


def _of_graphs(identity: Callable[..., Any], original: Any) -> Any:
    """A method that is `identity` for variables of graphs, and the original one for others."""

    @functools.wraps(original)
    def compared(variable: Any, *other: Any) -> Any:
        # Reference variables do not have it; programs that have these compare at once.
        if getattr(variable, "_in_graph_mode", False):
            return identity(variable, *other)
        return original(variable, *other)

    return compared


def _where_bases_differ(original: Any) -> Any:
    """`swap_class`, called only for a class with a base that it would swap."""

    @functools.wraps(original)
    def swapped(layer: type, eager: type, of_graphs: type, is_eager: bool) -> Any:
        right, wrong = (eager, of_graphs) if is_eager else (of_graphs, eager)

        def has_right_bases(each: type) -> bool:
            return all(
                base is right or (base is not wrong and has_right_bases(base))
                for base in each.__bases__
                if issubclass(base, wrong)
            )

        if layer not in (right, wrong, object) and has_right_bases(layer):
            return layer
        return original(layer, eager, of_graphs, is_eager)

    return swapped


_replacements = Replacements(_replace_all, _CHOOSE_BASES, _replace_in)
