"""Trains one TensorFlow model on many devices, with the API of TF-Slim's `model_deploy`.

A public name is imported at its first use, so that programs such as `python -m model_deploy.launch`
start without importing TensorFlow.
"""

import importlib
from typing import TYPE_CHECKING, Any

from model_deploy import slim

if TYPE_CHECKING:
    from model_deploy.clone_scopes import current_clone
    from model_deploy.config import DeploymentConfig
    from model_deploy.deployment import (
        DeployedModel,
        batches_taken,
        create_clones,
        deploy,
        optimize_clones,
    )
    from model_deploy.describing import (
        DeviceRow,
        PlacementReport,
        TransferRow,
        describe,
        draw_deployment,
    )
    from model_deploy.gradients import average_gradients
    from model_deploy.inputs import split_batch
    from model_deploy.parts import Clone
    from model_deploy.randomness import random_by_step
    from model_deploy.training import train

__all__ = [
    "Clone",
    "DeployedModel",
    "DeploymentConfig",
    "DeviceRow",
    "PlacementReport",
    "TransferRow",
    "average_gradients",
    "batches_taken",
    "create_clones",
    "current_clone",
    "deploy",
    "describe",
    "draw_deployment",
    "optimize_clones",
    "random_by_step",
    "slim",
    "split_batch",
    "train",
]

# Name -> module, as in the imports above, which only type checkers and the documentation read.  No
# module here may have such a name: importing the module would replace the object.
_MODULES = {
    "Clone": "parts",
    "DeployedModel": "deployment",
    "DeploymentConfig": "config",
    "DeviceRow": "describing",
    "PlacementReport": "describing",
    "TransferRow": "describing",
    "average_gradients": "gradients",
    "batches_taken": "deployment",
    "create_clones": "deployment",
    "current_clone": "clone_scopes",
    "deploy": "deployment",
    "describe": "describing",
    "draw_deployment": "describing",
    "optimize_clones": "deployment",
    "random_by_step": "randomness",
    "split_batch": "inputs",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    """Imports a name of `_MODULES`, or a module of this package, at its first use."""
    if name in _MODULES:
        value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    module = f"{__name__}.{name}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:  # the module exists, but one that it imports is missing
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
