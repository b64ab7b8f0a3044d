"""What `import horovod.tensorflow.keras as hvd` gives: Horovod for tf-keras in graph mode.

Keras 3 has no `fit` in graph mode: `model_deploy.deploy_model` trains its models there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.api._v1.keras import backend, models
from tf_keras.optimizers import legacy

from model_deploy import horovod
from model_deploy.horovod import world
from model_deploy.horovod.exchange import Exchange
from model_deploy.horovod.keras_optimizer import distributed_class
from model_deploy.horovod.reductions import Compression, Compressor
from model_deploy.horovod.tensorflow.keras import callbacks as callbacks

__all__ = list(horovod.__all__)
__all__ += ["load_model"]


def broadcast_global_variables(root_rank: int) -> None:
    """Gives all variables in `GLOBAL_VARIABLES` the values of one process, in Keras' session."""
    backend.get_session().run(horovod.broadcast_global_variables(root_rank))


def load_model(
    filepath: str,
    custom_optimizers: Sequence[type] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    compression: Compressor = Compression.none,
) -> Any:
    """A model as Keras saved it, whose optimizer makes its updates from all processes' gradients.

    Args:
      filepath: the file, or folder; with an optimizer of Keras, or one that was distributed.
      custom_optimizers: classes of the program's own that the optimizer may be of.
      custom_objects: name -> what the model has of the program's own; these come first.
      compression: how gradients travel, `Compression.none` or `.fp16`.

    Raises:
      ValueError: before `init`, and as Keras' `load_model`.
    """
    world.joined()
    of_keras = [kind for kind in vars(legacy).values() if isinstance(kind, type)]
    kinds = {
        kind.__name__: distributed_class(
            kind, Exchange(f"Distributed{kind.__name__}", "", compression)
        )
        for kind in [*of_keras, *(custom_optimizers or ())]
    }
    # By either name: Keras looks its own ones up by the name in small letters.
    lowered = {name.lower(): kind for name, kind in kinds.items()}
    return models.load_model(filepath, {**lowered, **kinds, **(custom_objects or {})})


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
