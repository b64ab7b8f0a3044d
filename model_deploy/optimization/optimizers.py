"""The seven optimizers by name, with the settings of each."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow.compat.v1 as tf

from model_deploy.commands import Options, option

train = tf.train


@dataclasses.dataclass(frozen=True)
class OptimizerOptions(Options):
    """Which optimizer, and its settings; each optimizer reads its own."""

    topic: ClassVar[str] = "optimizer"

    optimizer: str = option(
        "rmsprop",
        "name of the optimizer",
        choices=("adadelta", "adagrad", "adam", "ftrl", "momentum", "rmsprop", "sgd"),
    )
    adadelta_rho: float = option(0.95, "decay rate of adadelta", minimum=0, maximum=1)
    adagrad_initial_accumulator_value: float = option(
        0.1, "starting value of adagrad's accumulators", above=0
    )
    adam_beta1: float = option(0.9, "decay of adam's first moment", minimum=0, below=1)
    adam_beta2: float = option(0.999, "decay of adam's second moment", minimum=0, below=1)
    opt_epsilon: float = option(
        1.0, "epsilon in the divisor of adadelta, adam and rmsprop", above=0
    )
    ftrl_learning_rate_power: float = option(-0.5, "learning rate power of ftrl", maximum=0)
    ftrl_initial_accumulator_value: float = option(
        0.1, "starting value of ftrl's accumulators", minimum=0
    )
    ftrl_l1: float = option(0.0, "L1 regularization of ftrl", minimum=0)
    ftrl_l2: float = option(0.0, "L2 regularization of ftrl", minimum=0)
    momentum: float = option(0.9, "momentum of the momentum optimizer", minimum=0)
    rmsprop_momentum: float = option(0.9, "momentum of rmsprop", minimum=0)
    rmsprop_decay: float = option(0.9, "decay of rmsprop's mean square", minimum=0, below=1)


_BUILDERS: dict[str, Callable[[Any, OptimizerOptions], Any]] = {
    # Zeiler, https://arxiv.org/abs/1212.5701
    "adadelta": lambda rate, o: train.AdadeltaOptimizer(rate, o.adadelta_rho, o.opt_epsilon),
    # Duchi et al., https://jmlr.org/papers/v12/duchi11a.html
    "adagrad": lambda rate, o: train.AdagradOptimizer(rate, o.adagrad_initial_accumulator_value),
    # Kingma and Ba, https://arxiv.org/abs/1412.6980
    "adam": lambda rate, o: train.AdamOptimizer(rate, o.adam_beta1, o.adam_beta2, o.opt_epsilon),
    # McMahan et al., https://doi.org/10.1145/2487575.2488200
    "ftrl": lambda rate, o: train.FtrlOptimizer(
        rate,
        o.ftrl_learning_rate_power,
        o.ftrl_initial_accumulator_value,
        o.ftrl_l1,
        o.ftrl_l2,
    ),
    # Polyak, https://doi.org/10.1016/0041-5553(64)90137-5
    "momentum": lambda rate, o: train.MomentumOptimizer(rate, o.momentum, name="Momentum"),
    # Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning"
    "rmsprop": lambda rate, o: train.RMSPropOptimizer(
        rate, o.rmsprop_decay, o.rmsprop_momentum, o.opt_epsilon
    ),
    "sgd": lambda rate, _: train.GradientDescentOptimizer(rate),
}


def build_optimizer(learning_rate: Any, options: OptimizerOptions) -> Any:
    """The `tf.compat.v1.train.Optimizer` that `options` name.

    Args:
      learning_rate: a number or a float scalar tensor.
      options: name and settings; checked when they were made.
    """
    return _BUILDERS[options.optimizer](learning_rate, options)
