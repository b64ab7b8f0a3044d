"""Variables are read where they are, also in functions; seen in TensorFlow 2.16 to 2.21."""

import contextlib
import contextvars
import functools
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import resource_variable_ops

from model_deploy.internals.replacing import Replace, Replacements

_is_open = contextvars.ContextVar("variables are read where they are", default=False)
_READS = ("_read_variable_op", "sparse_read", "gather_nd")


def reading_where_variables_are() -> contextlib.AbstractContextManager[None]:
    """A `with` block in which conditions and loops may read variables of other devices.

    The body of a condition is a function, whose ops without a device get that of the condition: a
    clone's.  So do reads of variables, which TensorFlow itself moves to the variable; but what
    leads their values into an inner condition stays, and no session takes the graph ("Cannot
    colocate nodes").  In the block a read in a function names the variable's device.

    Wraps `BaseResourceVariable._read_variable_op`, `BaseResourceVariable.sparse_read` and
    `BaseResourceVariable.gather_nd`.
    """
    return _replacements.in_place(_is_open, True)


def _replace_all(replace: Replace) -> None:
    for name in _READS:
        replace(resource_variable_ops.BaseResourceVariable, name, _on_its_device)


def _on_its_device(original: Any) -> Any:
    @functools.wraps(original)
    def read(variable: Any, *args: Any, **kwargs: Any) -> Any:
        in_function = _is_open.get() and tf.get_default_graph().building_function
        device = variable.handle.device if in_function else ""
        with tf.device(device) if device else contextlib.nullcontext():
            return original(variable, *args, **kwargs)

    return read


_replacements = Replacements(_replace_all)
