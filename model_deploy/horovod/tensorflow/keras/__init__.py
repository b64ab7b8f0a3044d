"""What `import horovod.tensorflow.keras as hvd` gives: Horovod for tf-keras in graph mode.

Keras 3 has no `fit` in graph mode: `model_deploy.deploy_model` trains its models there.
"""

from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.api._v1.keras import backend

from model_deploy import horovod
from model_deploy.horovod.tensorflow.keras import callbacks as callbacks

__all__ = list(horovod.__all__)


def broadcast_global_variables(root_rank: int) -> None:
    """Gives all variables in `GLOBAL_VARIABLES` the values of one process, in Keras' session."""
    backend.get_session().run(horovod.broadcast_global_variables(root_rank))


def allreduce(value: Any, name: Any = None, average: bool = True) -> Any:
    """The mean or sum of numbers of any shape over all processes, a NumPy array of that shape."""
    return _run(horovod.allreduce(_constant(value), average=average, name=name))


def allgather(value: Any, name: Any = None) -> Any:
    """The rows of the arrays of all processes one behind the other, a NumPy array."""
    return _run(horovod.allgather(_constant(value), name=name))


def broadcast(value: Any, root_rank: int, name: Any = None) -> Any:
    """The numbers, of any shape, of one process, a NumPy array of that shape."""
    return _run(horovod.broadcast(_constant(value), root_rank, name=name))


def _constant(value: Any) -> Any:
    return tf.convert_to_tensor(value)


def _run(tensor: Any) -> Any:
    return backend.get_session().run(tensor)


def __getattr__(name: str) -> Any:
    return getattr(horovod, name)
