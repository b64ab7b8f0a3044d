"""What `import horovod.tensorflow as hvd` gives: the names of `model_deploy.horovod`."""

from typing import Any

from model_deploy import horovod

__all__ = list(horovod.__all__)


def __getattr__(name: str) -> Any:
    return getattr(horovod, name)
