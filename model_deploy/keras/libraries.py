"""Keras 3 and tf-keras: which of them an object is of, and what differs between them."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals


def library_of(thing: Any) -> Any:
    """The module `keras` or `tf_keras` that an object's class, or a base of it, comes from.

    Args:
      thing: an object; None stands for one of Keras 3.

    Returns:
      The module; None for an object of neither.
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
    """What `make` makes, with its variables in a graph that nobody uses."""
    with tf.Graph().as_default():
        return make()


def forget_variables(variables: Iterable[Any]) -> None:
    """Takes variables, of any shapes, out of the collection `GLOBAL_VARIABLES`: no checkpoint.

    They are those of Keras objects that are not used themselves, only what they say.
    """
    forgotten = {id(internals.tf_variable(each)) for each in variables if hasattr(each, "assign")}
    kept = tf.get_collection_ref(tf.GraphKeys.GLOBAL_VARIABLES)
    kept[:] = [variable for variable in kept if id(variable) not in forgotten]
