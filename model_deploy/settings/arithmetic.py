"""`ArithmeticSettings`: in which types a step computes, and over how many examples."""

import dataclasses
import math

from model_deploy.checks import check_bool, check_choice

PRECISIONS = ("float32", "bfloat16", "float16")
# How float32 values may cross process borders.
WIRE_PRECISIONS = ("float32", "bfloat16")
DYNAMIC = "dynamic"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArithmeticSettings:
    """In which types a step computes, and over how many examples.

    Attributes:
      precision: type in which convolutions, matrix products and the ops between them compute:
        `float32`, `bfloat16` or `float16`.  Variables, statistics, norms, softmax, losses,
        gradients of variables and updates are float32.
      loss_scale: factor by which losses are multiplied before gradients are taken: a number, or
        `dynamic`; see `loss_scale`.  None is `dynamic` for float16, and no scale for others.
      xla: compile each clone's part of a step, as far as XLA can; on CPUs that is slower.
      sync_batch_norm: take mean and variance of batch norms over the clones of the process, with
        `all_reduce` over those of all replicas, as one clone would on the whole batch.  With
        `accumulate_steps` over parts of the same index, for those of a clone run in turn.
      wire_precision: type in which gradients and, from parameter servers, variables of float32
        cross process borders in the steps that `deploy` builds: `float32`, or `bfloat16` for
        half of the bytes.  They are summed, updated and saved in float32; integers and
        variables that are not trained cross as they are.  For several processes only.
    """

    precision: str = "float32"
    loss_scale: float | str | None = None
    xla: bool = False
    sync_batch_norm: bool = False
    wire_precision: str = "float32"

    @property
    def scales_losses_by(self) -> float | str | None:
        """The loss scale, a number or `dynamic`; None where losses are not scaled."""
        if self.loss_scale is None and self.precision == "float16":
            return DYNAMIC
        return self.loss_scale

    def check_arithmetic(self) -> None:
        """Checks each field by itself.

        Raises:
          ValueError: for a value that breaks a rule, naming the field, the rule and the value.
        """
        check_choice("precision", self.precision, PRECISIONS)
        check_loss_scale(self.loss_scale)
        check_bool("xla", self.xla)
        check_bool("sync_batch_norm", self.sync_batch_norm)
        check_choice("wire_precision", self.wire_precision, WIRE_PRECISIONS)


def check_loss_scale(value: object) -> None:
    """Checks a setting: None, a number more than 0, or `dynamic`.

    Raises:
      ValueError: for another one.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is None or value == DYNAMIC or (is_number and 0 < float(str(value)) < math.inf):
        return
    raise ValueError(f"loss_scale must be {DYNAMIC!r} or a number more than 0, got {value!r}")
