"""Deploys Keras models with `model.compile`'s losses, optimizers and metrics; their weights."""

from model_deploy.keras.deploying import DeployedKerasModel, deploy_model
from model_deploy.keras.fine_tuning import restore_fn
from model_deploy.keras.optimizers import Translation, translate_optimizer
from model_deploy.keras.weights import (
    check_export,
    export_checkpoint,
    init_fn,
    is_weights_file,
    load_checkpoint,
    read_checkpoint,
    read_weights,
)

__all__ = [
    "DeployedKerasModel",
    "Translation",
    "check_export",
    "deploy_model",
    "export_checkpoint",
    "init_fn",
    "is_weights_file",
    "load_checkpoint",
    "read_checkpoint",
    "read_weights",
    "restore_fn",
    "translate_optimizer",
]
