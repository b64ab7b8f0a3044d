"""Functions that take what TensorFlow 1 took and TensorFlow 2 refuses, though it means the same."""

import functools
import importlib
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.tf1.old_module import OldModule


def name_scope(name: Any = None, default_name: Any = None, values: Any = None) -> Any:
    """`tf.name_scope`, which also takes the values in the place of the default name.

    Args:
      name: of the scope, or None.
      default_name: of the scope if `name` is None; or the values.
      values: tensors whose graph is the one to use.
    """
    if default_name is not None and not isinstance(default_name, str):
        return tf.name_scope(name, None, default_name if values is None else values)
    return tf.name_scope(name, default_name, values)


@functools.wraps(tf.placeholder)
def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    return tf.placeholder(dtype, _whole(shape), name)


@functools.wraps(tf.get_variable)
def get_variable(name: str, shape: Any = None, *args: Any, **kwargs: Any) -> Any:
    return tf.get_variable(name, _whole(shape), *args, **kwargs)


class ExponentialMovingAverage(tf.train.ExponentialMovingAverage):
    """`tf.train.ExponentialMovingAverage`, which also takes the losses of regularizers.

    These are in `REGULARIZATION_LOSSES` as objects that stand for a tensor and are none.
    """

    def apply(self, var_list: Any = None) -> Any:
        """An op that updates the averages of variables and losses."""
        return super().apply(None if var_list is None else [_tensor_of(each) for each in var_list])

    def average(self, var: Any) -> Any:
        """The variable that has the average."""
        return super().average(_tensor_of(var))

    def average_name(self, var: Any) -> Any:
        """The name of the variable that has the average."""
        return super().average_name(_tensor_of(var))


def _tensor_of(value: Any) -> Any:
    """The tensor that a value stands for, where it cannot be told from others by itself."""
    return value if hasattr(value, "ref") else value.op.outputs[value.value_index]


def flush() -> None:
    """`tf.logging.flush`: what was logged is written."""
    for handler in tf.get_logger().handlers:
        handler.flush()


def with_convolution_op(layer: type) -> type:
    """A layer of Keras with the method by which classes of TensorFlow 1 convolve."""

    def _convolution_op(self: Any, inputs: Any, kernel: Any) -> Any:
        return self.convolution_op(inputs, kernel)

    return type(layer.__name__, (layer,), {"_convolution_op": _convolution_op})


def with_variables(layer: type) -> type:
    """Keras' `Lambda`, whose function may make variables, as in Keras before 2.3.

    The layer does not have them among its weights, which the optimizers train; Keras initializes
    them.
    """

    def _check_variables(_: Any, created: Sequence[Any], __: Any) -> None:
        backend = importlib.import_module("tf_keras.src.backend")
        for variable in created:
            backend.track_variable(variable)

    return type(layer.__name__, (layer,), {"_check_variables": _check_variables})


_CELLS = ("BasicLSTMCell", "BasicRNNCell", "GRUCell", "LSTMCell")


@functools.cache
def cells(module: str) -> dict[str, Callable[[], Any]]:
    """Name -> what makes the class of a module's cell whose number of units may be a whole float.

    A division gives such a number, and in Python 2 an integer.
    """
    return {
        name: functools.cache(functools.partial(_with_whole_units, module, name)) for name in _CELLS
    }


def _with_whole_units(module: str, name: str) -> type:
    cell = getattr(importlib.import_module(module), name)

    @functools.wraps(cell.__init__)
    def init(self: Any, num_units: Any, *args: Any, **kwargs: Any) -> None:
        cell.__init__(self, _whole(num_units), *args, **kwargs)

    return type(name, (cell,), {"__init__": init, "__doc__": cell.__doc__})


class WithIntegers(OldModule):
    """A module whose functions get Python's integers for NumPy's, which were `int`s in Python 2."""

    def _find(self, name: str) -> Any:
        value = super()._find(name)
        return _with_integers(value) if isinstance(value, types.FunctionType) else value


def _with_integers(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_plain, args), **{key: _plain(each) for key, each in kwargs.items()})

    return call


def _plain(value: Any) -> Any:
    """A value with Python's integers, on its own or in a list or tuple, in the place of NumPy's."""
    if isinstance(value, np.integer):
        return int(value)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return value


def _whole(shape: Any) -> Any:
    """A shape with integers where it had whole floats, as a division gives them."""
    if isinstance(shape, list | tuple):
        return [_whole(size) for size in shape]
    if isinstance(shape, float | np.floating) and float(shape).is_integer():
        return int(shape)
    return shape
