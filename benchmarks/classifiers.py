"""Image classifiers that are trained on a constant batch, and how fast one is."""

import dataclasses
import math
import os
import time
from collections.abc import Callable

UNIT = "images/s"
NUM_CLASSES = 1000
LEARNING_RATE = 0.01


@dataclasses.dataclass(frozen=True)
class Work:
    """What a contender trains; its fields are the arguments of its process.

    Attributes:
      network: a name of `nets_factory`.
      precision: "float32" or "bfloat16".
      image_size: height and width, of 3 channels.
      batch_size: images in a step.
      secs: how long to train per measurement; 0 for one step.
    """

    network: str
    precision: str
    image_size: int
    batch_size: int
    secs: float

    @property
    def num_classes(self) -> int:
        """Width of the logits."""
        return 10 if self.network == "cifarnet" else NUM_CLASSES


def num_threads() -> int:
    """How many threads each contender computes with: the processors that it may use."""
    return len(os.sched_getaffinity(0))


def measure(step: Callable[[], float], work: Work) -> dict[str, float]:
    """Trains for `work.secs` seconds, after a step that is not timed.

    Args:
      step: makes a step and returns its loss.

    Raises:
      ValueError: if the loss is not finite, for then the work may be another one.
    """
    step()  # what other processes did meanwhile is in the caches
    steps, began = 0, time.perf_counter()
    while True:
        loss = step()
        steps += 1
        secs = time.perf_counter() - began
        if secs >= work.secs:
            break
    if not math.isfinite(loss):
        raise ValueError(f"the loss of {work} must be finite, got {loss}")
    return {UNIT: steps * work.batch_size / secs}
