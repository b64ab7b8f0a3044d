"""The optimizers by name."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.optimization.adamw import AdamWOptimizer
from model_deploy.optimization.lamb import LAMBOptimizer
from model_deploy.optimization.lars import LARSOptimizer
from model_deploy.optimization.lazy_adam import LazyAdamOptimizer
from model_deploy.optimization.optimizer_options import OptimizerOptions
from model_deploy.optimization.rows import (
    RowAdamOptimizer,
    RowAdamWOptimizer,
    RowFtrlOptimizer,
    RowMomentumOptimizer,
    RowRMSPropOptimizer,
)
from model_deploy.optimization.weight_decay import is_excluded

train = tf.train

# Name -> function (learning rate, options) -> optimizer; the names are `OPTIMIZERS`.
_BUILDERS: dict[str, Callable[[Any, OptimizerOptions], Any]] = {
    # Zeiler, https://arxiv.org/abs/1212.5701
    "adadelta": lambda rate, o: train.AdadeltaOptimizer(rate, o.adadelta_rho, o.opt_epsilon),
    # Duchi et al., https://jmlr.org/papers/v12/duchi11a.html
    "adagrad": lambda rate, o: train.AdagradOptimizer(rate, o.adagrad_initial_accumulator_value),
    # Kingma and Ba, https://arxiv.org/abs/1412.6980
    "adam": lambda rate, o: train.AdamOptimizer(rate, o.adam_beta1, o.adam_beta2, o.opt_epsilon),
    "adamw": lambda rate, o: AdamWOptimizer(rate, **_moment_arguments(o), epsilon=o.adamw_epsilon),
    # McMahan et al., https://doi.org/10.1145/2487575.2488200
    "ftrl": lambda rate, o: train.FtrlOptimizer(rate, **_ftrl_arguments(o)),
    "lamb": lambda rate, o: LAMBOptimizer(rate, **_moment_arguments(o), epsilon=o.lamb_epsilon),
    "lars": lambda rate, o: LARSOptimizer(
        rate, o.momentum, o.own_decay, o.lars_coefficient, no_weight_decay=o.no_weight_decay
    ),
    "lazy_adam": lambda rate, o: LazyAdamOptimizer(rate, o.adam_beta1, o.adam_beta2, o.opt_epsilon),
    # Polyak, https://doi.org/10.1016/0041-5553(64)90137-5
    "momentum": lambda rate, o: train.MomentumOptimizer(rate, o.momentum, name="Momentum"),
    # Nesterov's momentum as Sutskever et al. write it, section 2 of
    # https://proceedings.mlr.press/v28/sutskever13.html
    "nesterov": lambda rate, o: train.MomentumOptimizer(
        rate, o.momentum, use_nesterov=True, name="Nesterov"
    ),
    # Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning"
    "rmsprop": lambda rate, o: train.RMSPropOptimizer(
        rate, o.rmsprop_decay, o.rmsprop_momentum, o.opt_epsilon
    ),
    "row_adam": lambda rate, o: RowAdamOptimizer(rate, o.adam_beta1, o.adam_beta2, o.opt_epsilon),
    "row_adamw": lambda rate, o: RowAdamWOptimizer(
        rate, **_moment_arguments(o), epsilon=o.adamw_epsilon
    ),
    "row_ftrl": lambda rate, o: RowFtrlOptimizer(rate, **_ftrl_arguments(o)),
    "row_momentum": lambda rate, o: RowMomentumOptimizer(rate, o.momentum),
    "row_nesterov": lambda rate, o: RowMomentumOptimizer(
        rate, o.momentum, use_nesterov=True, name="Nesterov"
    ),
    "row_rmsprop": lambda rate, o: RowRMSPropOptimizer(
        rate, o.rmsprop_decay, o.rmsprop_momentum, o.opt_epsilon
    ),
    "sgd": lambda rate, _: train.GradientDescentOptimizer(rate),
}


def _moment_arguments(options: OptimizerOptions) -> dict[str, Any]:
    """Returns the arguments that `AdamWOptimizer` and `LAMBOptimizer` share."""
    return {
        "weight_decay": options.own_decay,
        "beta1": options.adam_beta1,
        "beta2": options.adam_beta2,
        "no_weight_decay": options.no_weight_decay,
    }


def _ftrl_arguments(options: OptimizerOptions) -> dict[str, Any]:
    """Returns the arguments that `FtrlOptimizer` and `RowFtrlOptimizer` share."""
    return {
        "learning_rate_power": options.ftrl_learning_rate_power,
        "initial_accumulator_value": options.ftrl_initial_accumulator_value,
        "l1_regularization_strength": options.ftrl_l1,
        "l2_regularization_strength": options.ftrl_l2,
        "l2_shrinkage_regularization_strength": options.ftrl_l2_shrinkage,
    }


def build_optimizer(learning_rate: Any, options: OptimizerOptions) -> Any:
    """Returns the `tf.compat.v1.train.Optimizer` that `options` name.

    Args:
      learning_rate: a number or a float scalar tensor.
      options: name and settings; checked when they were made.
    """
    return _BUILDERS[options.optimizer](learning_rate, options)


def weight_decay_note(
    options: OptimizerOptions, variables: Sequence[Any], regularization: float
) -> str | None:
    """Returns a sentence on the optimizer's own weight decay; None if it applies none.

    Args:
      options: the optimizer's name and options.
      variables: the variables to train, of any shapes.
      regularization: weight of the L2 regularization in the loss.
    """
    if not options.own_decay:
        return None
    left_out = [v for v in variables if is_excluded(v, options.no_weight_decay)]
    note = (
        f"{options.optimizer} decays {len(variables) - len(left_out)} of {len(variables)} "
        f"variables by {options.own_decay:g} times the rate"
    )
    if options.no_weight_decay:
        note += f", not those with {options.no_weight_decay!r} in their names"
    if regularization:
        note += f"; the loss has L2 regularization of {regularization:g} as well"
        note += " (--weight_decay=0: none)"
    return note
