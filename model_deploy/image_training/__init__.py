"""Trains (alone or in a cluster), evaluates and exports image classifiers from options alone."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.image_training.eval_options import EvalOptions
    from model_deploy.image_training.evaluating import evaluate
    from model_deploy.image_training.export_options import ExportOptions
    from model_deploy.image_training.exporting import export
    from model_deploy.image_training.first_checks import check_task
    from model_deploy.image_training.networks import Networks
    from model_deploy.image_training.tasks import train_task
    from model_deploy.image_training.train_options import TrainOptions
    from model_deploy.image_training.training_run import train

__all__ = [
    "EvalOptions",
    "ExportOptions",
    "Networks",
    "TrainOptions",
    "check_task",
    "evaluate",
    "export",
    "train",
    "train_task",
]

import_when_used(__name__)
