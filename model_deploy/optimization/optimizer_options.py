"""`OptimizerOptions`: the settings, each a flag, of an optimizer."""

import dataclasses
from typing import ClassVar

from model_deploy.commands import Options, option
from model_deploy.optimization.weight_decay import NO_WEIGHT_DECAY, check_pattern

# Names of optimizers, in the order of `--help`; `optimizers.py` builds them.
OPTIMIZERS = (
    "adadelta",
    "adagrad",
    "adam",
    "adamw",
    "ftrl",
    "lamb",
    "lars",
    "lazy_adam",
    "momentum",
    "nesterov",
    "rmsprop",
    "row_adam",
    "row_adamw",
    "row_ftrl",
    "row_momentum",
    "row_nesterov",
    "row_rmsprop",
    "sgd",
)
# Optimizers with a weight decay of their own, and its default: Keras' for AdamW, the authors' for
# LAMB, the paper's for LARS.
_DECAYS = {"adamw": 0.01, "lamb": 0.01, "lars": 0.0005, "row_adamw": 0.01}


@dataclasses.dataclass(frozen=True)
class OptimizerOptions(Options):
    """The name of the optimizer, and the options of each; an optimizer uses its own only."""

    topic: ClassVar[str] = "optimizer"

    optimizer: str = option(
        "rmsprop",
        "name of the optimizer; row_NAME is NAME for a dense gradient, at the cost of the rows of "
        "a step in tables of embeddings",
        choices=OPTIMIZERS,
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
