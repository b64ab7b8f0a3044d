"""Keras 3 and tf-keras: which of the two an object belongs to, and their differences."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals


def library_of(thing: Any) -> Any:
    """Returns the module, `keras` or `tf_keras`, that an object's class or base class is from.

    Args:
      thing: an object; None for Keras 3.

    Returns:
      The module; None for other objects.
    """
    if thing is None:
        import keras  # noqa: PLC0415 - it takes seconds

        return keras
    for base in type(thing).__mro__:
        top = base.__module__.partition(".")[0]
        if top in ("keras", "tf_keras"):
            return sys.modules[top]
    return None


def new_without_graph(make: Callable[[], Any]) -> Any:
    """Returns `make()`, with its variables in a graph of their own that is not used."""
    with tf.Graph().as_default():
        return make()


def forget_variables(variables: Iterable[Any]) -> None:
    """Removes variables, of any shapes, from `GLOBAL_VARIABLES`, and so from checkpoints.

    For variables of Keras objects, such as optimizers, of which only the settings are used.
    """
    forgotten = {id(internals.tf_variable(each)) for each in variables if hasattr(each, "assign")}
    kept = tf.get_collection_ref(tf.GraphKeys.GLOBAL_VARIABLES)
    kept[:] = [variable for variable in kept if id(variable) not in forgotten]
