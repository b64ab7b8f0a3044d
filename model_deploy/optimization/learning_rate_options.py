"""`LearningRateOptions`: the settings, each a flag, of a learning-rate schedule."""

import dataclasses
import math
from typing import ClassVar

from model_deploy.commands import Options, option


@dataclasses.dataclass(frozen=True)
class LearningRateOptions(Options):
    """How the learning rate changes over the epochs.

    Raises:
      ValueError: as `Options`; for different numbers of boundaries and factors, or a warm-up that
        would start above the rate.
    """

    topic: ClassVar[str] = "learning rate"

    learning_rate: float = option(0.01, "learning rate at the start", above=0, common=True)
    learning_rate_decay_type: str = option(
        "exponential",
        "how the learning rate falls",
        choices=(
            *("fixed", "exponential", "polynomial", "cosine", "one_cycle", "piecewise", "plateau"),
        ),
    )
    end_learning_rate: float = option(
        0.0001,
        "learning rate at the end of cosine, one_cycle and polynomial decay; plateau's least one",
        minimum=0,
    )
    learning_rate_decay_factor: float = option(
        0.94, "factor of each fall of exponential decay and plateau", above=0, maximum=1
    )
    num_epochs_per_decay: float = option(2.0, "epochs from one fall to the next", above=0)
    schedule_epochs: float | None = option(
        None, "epochs of cosine and one_cycle; default: those of the run", above=0
    )
    one_cycle_peak: float = option(
        0.45,
        "share of one_cycle at which the rate is --learning_rate; at twice that it is back",
        above=0,
        below=0.5,
    )
    one_cycle_divisor: float = option(
        10.0, "how many times lower one_cycle starts than --learning_rate", minimum=1
    )
    learning_rate_boundaries: str = option(
        "", "epochs at which piecewise goes to its next factor, such as 30,60,80"
    )
    learning_rate_factors: str = option(
        "", "factors of --learning_rate from each of these epochs on, such as 0.1,0.01,0.001"
    )
    plateau_patience: int = option(
        3,
        "evaluations in a row without improvement of --stop_metric after which plateau falls",
        minimum=1,
    )
    plateau_min_delta: float = option(
        0.0, "an improvement is more than this, for plateau", minimum=0
    )
    warmup_epochs: float = option(
        0.0, "epochs in which the learning rate rises to its start", minimum=0
    )
    warmup_learning_rate: float = option(
        0.0, "learning rate from which the warm-up rises", minimum=0
    )
    learning_rate_scaling: str = option(
        "none",
        "how --learning_rate, which is for --learning_rate_batch_size, follows the batch size of "
        "an update: times the ratio of the two, or its root",
        choices=("none", "linear", "sqrt"),
    )
    learning_rate_batch_size: int = option(
        256, "images of an update for which --learning_rate is right", minimum=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        boundaries = numbers_in("learning_rate_boundaries", self.learning_rate_boundaries)
        factors = numbers_in("learning_rate_factors", self.learning_rate_factors)
        if any(b <= a for a, b in zip([0.0, *boundaries], boundaries, strict=False)):
            raise ValueError(
                "learning_rate_boundaries must be more than 0 and rise, "
                f"got {self.learning_rate_boundaries!r}"
            )
        if any(not 0 < factor <= 1 for factor in factors):
            raise ValueError(
                "learning_rate_factors must be more than 0 and at most 1, "
                f"got {self.learning_rate_factors!r}"
            )
        if len(boundaries) != len(factors):
            raise ValueError(
                "learning_rate_factors must be as many as learning_rate_boundaries, "
                f"got {self.learning_rate_factors!r} for {self.learning_rate_boundaries!r}"
            )
        if bool(boundaries) != (self.learning_rate_decay_type == "piecewise"):
            raise ValueError(
                "learning_rate_boundaries must go with learning_rate_decay_type=piecewise, "
                f"got {self.learning_rate_boundaries!r} with {self.learning_rate_decay_type}"
            )


def check_plateau_is_evaluated(eval_every_n_steps: int | None) -> None:
    """Checks that a learning rate that follows evaluations has some.

    Raises:
      ValueError: naming the field and the rule.
    """
    if eval_every_n_steps is None:
        raise ValueError(
            "learning_rate_decay_type=plateau must go with eval_every_n_steps, got None"
        )


def numbers_in(field: str, text: str) -> list[float]:
    """Parses a list of numbers such as `30,60`.

    Raises:
      ValueError: naming the field, if the text is something else.
    """
    try:
        numbers = [float(each) for each in text.split(",")] if text else []
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise ValueError(f"{field} must be numbers with commas between them, got {text!r}")
    return numbers
