"""The optimizers by name, with the options of each."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import tensorflow.compat.v1 as tf

from model_deploy.commands import Options, option
from model_deploy.optimization.adamw import AdamWOptimizer
from model_deploy.optimization.lamb import LAMBOptimizer
from model_deploy.optimization.lars import LARSOptimizer
from model_deploy.optimization.lazy_adam import LazyAdamOptimizer
from model_deploy.optimization.rows import (
    RowAdamOptimizer,
    RowAdamWOptimizer,
    RowFtrlOptimizer,
    RowMomentumOptimizer,
    RowRMSPropOptimizer,
)
from model_deploy.optimization.weight_decay import NO_WEIGHT_DECAY, check_pattern, is_excluded

train = tf.train

# Optimizers with a weight decay of their own, and its default: Keras' for AdamW, the authors' for
# LAMB, the paper's for LARS.
_DECAYS = {"adamw": 0.01, "lamb": 0.01, "lars": 0.0005, "row_adamw": 0.01}


# Name -> function (learning rate, options) -> optimizer, in the order of `--help`.
_BUILDERS: dict[str, Callable[[Any, "OptimizerOptions"], Any]] = {
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


@dataclasses.dataclass(frozen=True)
class OptimizerOptions(Options):
    """The name of the optimizer, and the options of each; an optimizer uses its own only."""

    topic: ClassVar[str] = "optimizer"

    optimizer: str = option(
        "rmsprop",
        "name of the optimizer; row_NAME is NAME for a dense gradient, at the cost of the rows of "
        "a step in tables of embeddings",
        choices=tuple(_BUILDERS),
        common=True,
    )
    adadelta_rho: float = option(0.95, "decay rate of adadelta", minimum=0, maximum=1)
    adagrad_initial_accumulator_value: float = option(
        0.1, "starting value of adagrad's accumulators", above=0
    )
    adam_beta1: float = option(
        0.9, "decay of the first moment of adam, adamw and lamb", minimum=0, below=1
    )
    adam_beta2: float = option(
        0.999, "decay of the second moment of adam, adamw and lamb", minimum=0, below=1
    )
    adamw_epsilon: float = option(1e-8, "epsilon in the divisor of adamw", above=0)
    lamb_epsilon: float = option(1e-6, "epsilon in the divisor of lamb", above=0)
    lars_coefficient: float = option(
        0.001, "how far lars goes at rate 1, in lengths of the layer", above=0
    )
    optimizer_weight_decay: float | None = option(
        None,
        "weight decay that adamw, lamb and lars do themselves, in place of --weight_decay; "
        "default: " + ", ".join(f"{name} {decay}" for name, decay in _DECAYS.items()),
        minimum=0,
    )
    no_weight_decay: str = option(
        NO_WEIGHT_DECAY,
        "regular expression for names of variables that adamw, lamb and lars do not decay, and "
        "lamb and lars do not scale",
    )
    opt_epsilon: float = option(
        1.0, "epsilon in the divisor of adadelta, adam and rmsprop", above=0
    )
    ftrl_learning_rate_power: float = option(-0.5, "learning rate power of ftrl", maximum=0)
    ftrl_initial_accumulator_value: float = option(
        0.1, "starting value of ftrl's accumulators", minimum=0
    )
    ftrl_l1: float = option(0.0, "L1 regularization of ftrl", minimum=0)
    ftrl_l2: float = option(0.0, "L2 regularization of ftrl", minimum=0)
    ftrl_l2_shrinkage: float = option(
        0.0, "share of each value that ftrl's gradients have added, halved", minimum=0
    )
    momentum: float = option(0.9, "momentum of lars, momentum and nesterov", minimum=0)
    rmsprop_momentum: float = option(0.9, "momentum of rmsprop", minimum=0)
    rmsprop_decay: float = option(0.9, "decay of rmsprop's mean square", minimum=0, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_pattern("no_weight_decay", self.no_weight_decay)

    @property
    def own_decay(self) -> float:
        """The weight decay that the optimizer itself applies; 0 if it applies none."""
        if self.optimizer not in _DECAYS:
            return 0.0
        if self.optimizer_weight_decay is None:
            return _DECAYS[self.optimizer]
        return self.optimizer_weight_decay


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
