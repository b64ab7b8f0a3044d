"""What contenders on GPUs train, and how fast; neither TensorFlow nor PyTorch is needed here."""

import dataclasses
import math
import subprocess
import time
from collections.abc import Callable

RATE, MEMORY = "images/s", "GPU MB"
NUM_CLASSES = 1000
LEARNING_RATE = 0.01
_TIMEOUT_SECS = 10


@dataclasses.dataclass(frozen=True)
class GpuWork:
    """What a contender trains; its fields are the arguments of its process.

    Attributes:
      network: a name of `nets_factory`.
      precision: "float32", "tf32", "bfloat16" or "float16".
      image_size: height and width, of 3 channels.
      batch_size: images in a batch of a clone.
      steps: timed steps.
      compiled: by XLA, or by `torch.compile`.
      num_clones: how many GPUs train.
      aggregate_on: that of `DeploymentConfig`.
      by_train: by `model_deploy.train`, not in a bare loop.
      data_dir: TFRecords of photographs; a constant batch without.
      on_cpu: on logical CPUs, only to see that all runs.
    """

    network: str
    precision: str
    image_size: int
    batch_size: int
    steps: int
    compiled: bool = False
    num_clones: int = 1
    aggregate_on: str | None = None
    by_train: bool = False
    data_dir: str | None = None
    on_cpu: bool = False

    @property
    def images_per_step(self) -> int:
        """Over all clones."""
        return self.num_clones * self.batch_size

    @property
    def warm_up(self) -> int:
        """Steps that are not timed: kernels are chosen, and compiled, in the first ones."""
        return max(1, self.steps // 10)

    @property
    def in_float32(self) -> bool:
        """Whether values are in 32 bits, whatever a product rounds them to."""
        return self.precision in ("float32", "tf32")


def measure(step: Callable[[], float], work: GpuWork) -> dict[str, float]:
    """Times `work.steps` steps.

    Args:
      step: makes a step and returns its loss, when it is done.

    Raises:
      ValueError: if the loss is not finite, for then the work may be another one.
    """
    for _ in range(work.warm_up):
        loss = step()
    began = time.perf_counter()
    for _ in range(work.steps):
        loss = step()
    secs = time.perf_counter() - began
    if not math.isfinite(loss):
        raise ValueError(f"the loss of {work} must be finite, got {loss}")
    return rates(work.steps / secs, work)


def rates(steps_per_sec: float, work: GpuWork) -> dict[str, float]:
    """What a contender answers."""
    return {
        RATE: steps_per_sec * work.images_per_step,
        MEMORY: 0.0 if work.on_cpu else used_megabytes(),
    }


def used_megabytes() -> float:
    """Memory of the first GPU that is taken, as the driver counts it.

    Each library keeps what it once had, so after some steps that is its peak, with the library's
    own code.
    """
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    found = subprocess.run(query, capture_output=True, text=True, check=True, timeout=_TIMEOUT_SECS)
    return float(found.stdout.split()[0])


def gpu_name() -> str:
    """Name of the first GPU and version of its driver, as the driver has them."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    found = subprocess.run(query, capture_output=True, text=True, check=True, timeout=_TIMEOUT_SECS)
    return ", driver ".join(part.strip() for part in found.stdout.splitlines()[0].split(","))
