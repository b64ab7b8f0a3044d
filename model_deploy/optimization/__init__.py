"""Builds the optimizers, learning rates and moving averages that options name."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.optimization.adamw import AdamWOptimizer
    from model_deploy.optimization.averages import averages_to_restore, moving_average_update
    from model_deploy.optimization.lamb import LAMBOptimizer
    from model_deploy.optimization.lars import LARSOptimizer
    from model_deploy.optimization.lazy_adam import LazyAdamOptimizer
    from model_deploy.optimization.learning_rate_options import (
        LearningRateOptions,
        check_plateau_is_evaluated,
    )
    from model_deploy.optimization.optimizer_options import OptimizerOptions
    from model_deploy.optimization.optimizers import (
        build_optimizer,
        weight_decay_note,
    )
    from model_deploy.optimization.plateau import Plateau, noted_plateau
    from model_deploy.optimization.rows import (
        RowAdamOptimizer,
        RowAdamWOptimizer,
        RowFtrlOptimizer,
        RowMomentumOptimizer,
        RowRMSPropOptimizer,
        current_value,
        has_tables,
    )
    from model_deploy.optimization.schedules import (
        build_learning_rate,
        learning_rate_note,
        scaled_learning_rate,
    )
    from model_deploy.optimization.weight_decay import layer_name

__all__ = [
    "AdamWOptimizer",
    "LAMBOptimizer",
    "LARSOptimizer",
    "LazyAdamOptimizer",
    "LearningRateOptions",
    "OptimizerOptions",
    "Plateau",
    "RowAdamOptimizer",
    "RowAdamWOptimizer",
    "RowFtrlOptimizer",
    "RowMomentumOptimizer",
    "RowRMSPropOptimizer",
    "averages_to_restore",
    "build_learning_rate",
    "build_optimizer",
    "check_plateau_is_evaluated",
    "current_value",
    "has_tables",
    "layer_name",
    "learning_rate_note",
    "moving_average_update",
    "noted_plateau",
    "scaled_learning_rate",
    "weight_decay_note",
]

import_when_used(__name__)
