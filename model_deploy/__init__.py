"""Trains one TensorFlow model on many devices, with the API of TF-Slim's `model_deploy`.

A public name is imported at its first use, so that programs such as `python -m model_deploy.launch`
start without importing TensorFlow.
"""

from typing import TYPE_CHECKING

from model_deploy import slim
from model_deploy.importing import import_when_used

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

import_when_used(__name__)
