"""Trains one TensorFlow model on many devices, with the API of TF-Slim's `model_deploy`."""

from model_deploy import slim
from model_deploy.batches import split_batch
from model_deploy.clones import Clone, create_clones, current_clone
from model_deploy.config import DeploymentConfig
from model_deploy.deployment import DeployedModel, deploy, optimize_clones
from model_deploy.describe import DeviceRow, PlacementReport, TransferRow, describe
from model_deploy.gradients import average_gradients
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
    "create_clones",
    "current_clone",
    "deploy",
    "describe",
    "optimize_clones",
    "random_by_step",
    "slim",
    "split_batch",
    "train",
]
