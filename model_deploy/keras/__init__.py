"""Deploys Keras models with `model.compile`'s losses, optimizers and metrics; their weights."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.keras.deploying import DeployedKerasModel, deploy_model
    from model_deploy.keras.file_names import check_export, is_weights_file
    from model_deploy.keras.fine_tuning import restore_fn
    from model_deploy.keras.optimizers import Translation, translate_optimizer
    from model_deploy.keras.weights import (
        export_checkpoint,
        init_fn,
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

import_when_used(__name__)
