"""`GpuSettings`: memory, arithmetic and layouts of a deployment's GPUs."""

import dataclasses
import numbers

from model_deploy.checks import check_bool, check_choice

# Where the gradients of the clones of a process are summed.
AGGREGATE_ON = ("cpu", "gpu", "all_reduce")
# Orders of the axes of images; `auto` leaves the choice to TensorFlow.
DATA_FORMATS = ("auto", "NHWC", "NCHW")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuSettings:
    """How a deployment uses its GPUs; the settings have no effect without GPUs.

    Attributes:
      aggregate_on: where the gradients of a process's clones are summed: on its `cpu`; on the
        clones' `gpu`s, each for a share of the variables, if GPUs can access each other's memory;
        or by `all_reduce`, the same as `all_reduce=True`.  None is `all_reduce` with
        `all_reduce=True`, else `cpu`.  Sparse gradients are concatenated on the CPU, where the
        variables are.
      gpu_memory_fraction: fraction of each GPU's memory, more than 0 and at most 1, that the
        process allocates at the start, and no more.  None allocates memory as needed.
      tf32: let GPUs round the factors of float32 products to 10 bits, where they can, which is
        many times faster.
      data_format: `auto` lets TensorFlow change convolutions to the layout that is fast on the GPU:
        `NCHW` for float32, `NHWC` for 16 bits on tensor cores.  `NHWC` leaves them as built; with
        `NCHW` clones compute with channels first, whatever `model_fn` says, see
        `rewrites.computing_in_layout`.
    """

    aggregate_on: str | None = None
    gpu_memory_fraction: float | None = None
    tf32: bool = False
    data_format: str = "auto"

    def check_gpus(self) -> None:
        """Checks each field alone.

        Raises:
          ValueError: for an invalid value, naming the field, the rule and the value.
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
