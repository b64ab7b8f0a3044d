"""Training runs: optimizers, schedules, the loop, evaluation."""

from model_deploy.training.averages import averages_to_restore, moving_average_update
from model_deploy.training.classification import add_classification_losses
from model_deploy.training.classifier import (
    Classifier,
    ClassifierOptions,
    get_dataset,
    get_evaluation_dataset,
)
from model_deploy.training.devices import (
    DeploymentOptions,
    clone_batch_size,
    clones_in_update,
    deployment_config,
    way_to_train,
)
from model_deploy.training.evaluation import Evaluator, evaluate
from model_deploy.training.evaluation_checkpoints import checkpoints_in, is_checkpoint
from model_deploy.training.evaluation_files import EvaluationWriter
from model_deploy.training.evaluation_results import Evaluation, Predictions
from model_deploy.training.exporting import (
    check_is_new,
    restore_to_export,
    write_frozen_graph,
    write_saved_model,
)
from model_deploy.training.gone import gone
from model_deploy.training.joining import Place, join, serve
from model_deploy.training.loop import check_writable, train
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.optimizers import OptimizerOptions, build_optimizer
from model_deploy.training.restoring import (
    FineTuneOptions,
    check_start,
    find_checkpoint,
    restore_fn,
    variables_to_train,
)
from model_deploy.training.run import TrainResult
from model_deploy.training.schedules import LearningRateOptions, build_learning_rate
from model_deploy.training.serving import Serving, Signature
from model_deploy.training.watching import CheckpointWatch, clear_end, mark_end

__all__ = [
    "CheckpointWatch",
    "Classifier",
    "ClassifierOptions",
    "DeploymentOptions",
    "Evaluation",
    "EvaluationWriter",
    "Evaluator",
    "FineTuneOptions",
    "LearningRateOptions",
    "LoopOptions",
    "OptimizerOptions",
    "Place",
    "Predictions",
    "Serving",
    "Signature",
    "TrainResult",
    "add_classification_losses",
    "averages_to_restore",
    "build_learning_rate",
    "build_optimizer",
    "check_is_new",
    "check_start",
    "check_writable",
    "checkpoints_in",
    "clear_end",
    "clone_batch_size",
    "clones_in_update",
    "deployment_config",
    "evaluate",
    "find_checkpoint",
    "get_dataset",
    "get_evaluation_dataset",
    "gone",
    "is_checkpoint",
    "join",
    "mark_end",
    "moving_average_update",
    "restore_fn",
    "restore_to_export",
    "serve",
    "train",
    "variables_to_train",
    "way_to_train",
    "write_frozen_graph",
    "write_saved_model",
]
