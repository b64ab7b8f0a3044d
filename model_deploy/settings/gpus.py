"""`GpuSettings`: what a deployment asks of its GPUs."""

import dataclasses
import numbers

from model_deploy.checks import check_bool, check_choice

# Where the gradients of the clones of a process are summed.
AGGREGATE_ON = ("cpu", "gpu", "all_reduce")
# Orders of the axes of images; TensorFlow's own choice.
DATA_FORMATS = ("auto", "NHWC", "NCHW")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuSettings:
    """How a deployment uses its GPUs; without GPUs the settings mean nothing.

    Attributes:
      aggregate_on: where the gradients of a process's clones are summed: on its `cpu`; on the
        `gpu`s of the clones, each of which sums those of a share of the variables, where GPUs can
        reach each other's memory; or by `all_reduce`, which is `all_reduce=True` by another name.
        None is `all_reduce` with `all_reduce=True`, else `cpu`.  Sparse gradients are put one
        behind the other on the CPU, as the variables are there.
      gpu_memory_fraction: share of the memory of each GPU that the process takes when it starts,
        and no more, more than 0 and at most 1.  None takes what it needs, as it needs it.
      tf32: let GPUs that can round the factors of float32 products to 10 bits, which is many times
        faster.  Without it a product in float32 is one.
      data_format: `auto` lets TensorFlow turn convolutions into the order of axes that the GPU is
        fast with, `NCHW` for float32 and `NHWC` for 16 bits on tensor cores.  `NHWC` leaves them
        as the model is built; with `NCHW` clones compute with the channels in front, whatever
        `model_fn` says, see `rewrites.computing_in_layout`.
    """

    aggregate_on: str | None = None
    gpu_memory_fraction: float | None = None
    tf32: bool = False
    data_format: str = "auto"

    def check_gpus(self) -> None:
        """Checks each field by itself.

        Raises:
          ValueError: for a value that breaks a rule, naming the field, the rule and the value.
        """
        if self.aggregate_on is not None:
            check_choice("aggregate_on", self.aggregate_on, AGGREGATE_ON)
        check_choice("data_format", self.data_format, DATA_FORMATS)
        check_bool("tf32", self.tf32)
        fraction = self.gpu_memory_fraction
        if fraction is None:
            return
        is_number = isinstance(fraction, numbers.Real) and not isinstance(fraction, bool)
        if not is_number or not 0 < fraction <= 1:
            raise ValueError(
                f"gpu_memory_fraction must be more than 0 and at most 1, got {fraction!r}"
            )
