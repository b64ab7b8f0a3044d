"""`ArithmeticSettings`: dtypes, loss scale, XLA and batch norms of a step."""

import dataclasses
import math

from model_deploy.checks import check_bool, check_choice

PRECISIONS = ("float32", "bfloat16", "float16")
# The types in which float32 values may be sent between processes.
WIRE_PRECISIONS = ("float32", "bfloat16")
DYNAMIC = "dynamic"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArithmeticSettings:
    """The dtypes in which a step computes, and how its batch norms and losses are treated.

    Attributes:
      precision: type in which convolutions, matrix products and the ops between them compute:
        `float32`, `bfloat16` or `float16`.  Variables, statistics, norms, softmax, losses,
        gradients of variables and updates are float32.
      loss_scale: factor of losses while gradients are computed: a number, or `dynamic`, see
        `updating.LossScale`.  None is `dynamic` for float16, and no scale otherwise.
      xla: compile each clone's part of a step with XLA, as far as possible; slower on CPUs.
      sync_batch_norm: take mean and variance of batch norms over all clones of the process, and
        with `all_reduce` of all replicas, as one clone would on the whole batch.  With
        `accumulate_steps` they are over the clones' parts of the same index.
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
        """Checks each field alone.

        Raises:
          ValueError: for an invalid value, naming the field, the rule and the value.
        """
        check_choice("precision", self.precision, PRECISIONS)
        check_loss_scale(self.loss_scale)
        check_bool("xla", self.xla)
        check_bool("sync_batch_norm", self.sync_batch_norm)
        check_choice("wire_precision", self.wire_precision, WIRE_PRECISIONS)


def check_loss_scale(value: object) -> None:
    """Checks a loss scale: None, a number more than 0, or `dynamic`.

    Raises:
      ValueError: for any other value.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is None or value == DYNAMIC or (is_number and 0 < float(str(value)) < math.inf):
        return
    raise ValueError(f"loss_scale must be {DYNAMIC!r} or a number more than 0, got {value!r}")
