"""What `import horovod.keras as hvd` gives: the names of `horovod.tensorflow.keras`."""

from typing import Any

from model_deploy.horovod.keras import callbacks as callbacks
from model_deploy.horovod.tensorflow import keras

__all__ = list(keras.__all__)


def __getattr__(name: str) -> Any:
    return getattr(keras, name)
