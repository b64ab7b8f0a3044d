"""Optimizers, learning rates and moving averages as options name them."""

from model_deploy.optimization.averages import averages_to_restore, moving_average_update
from model_deploy.optimization.optimizers import OptimizerOptions, build_optimizer
from model_deploy.optimization.schedules import LearningRateOptions, build_learning_rate

__all__ = [
    "LearningRateOptions",
    "OptimizerOptions",
    "averages_to_restore",
    "build_learning_rate",
    "build_optimizer",
    "moving_average_update",
]
