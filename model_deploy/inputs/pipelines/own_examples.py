"""`OwnExamples`: what a user's datasets of anything but images have in common."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from model_deploy.inputs.files.corrupt_records import Tolerance
from model_deploy.inputs.order.epochs import Order
from model_deploy.inputs.pipelines import holding


class ExampleBatching(Protocol):
    """How examples become batches: what a pipeline asks, of images or of a user's examples.

    Attributes:
      batch_size: examples per batch.
      cached_bytes: bytes of decoded examples that the process keeps besides the pipeline's own.
      dataset: the examples.
    """

    @property
    def dataset(self) -> Any: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def cached_bytes(self) -> int: ...

    @property
    def tables(self) -> Sequence[np.ndarray]:
        """The arrays to put into the graph, of any shapes."""

    @property
    def reads_windows(self) -> bool:
        """Whether stored neighbours in a window are read together."""

    @property
    def decodes_windows(self) -> bool:
        """Whether the examples of a window are decoded together."""

    @property
    def work(self) -> holding.Work:
        """The largest number of examples that are in preparation at the same time."""

    def pipeline(self) -> Callable[[Any], Any]:
        """Returns a function from a `tf.data.Dataset` of example numbers to one of batches."""


class OwnExamples(abc.ABC):
    """A dataset of a user's own examples, for `train_batches` and `eval_batches`.

    Attributes:
      num_examples: number of examples, at least 1.
      tolerance: the count of skipped examples.
    """

    num_examples: int
    tolerance: Tolerance

    @abc.abstractmethod
    def batching(self, batch_size: int, training: bool, **settings: Any) -> ExampleBatching:
        """Returns how the examples become batches.

        Args:
          batch_size: examples per batch.
          training: whether the batches are for training.
          **settings: the fields that `Batching` of images and batchings of a user's examples share.

        Raises:
          ValueError: for a number below 1.
        """

    def check_order(self, order: Order) -> None:  # noqa: B027 - most take any order
        """Checks that the examples can be read in an order.

        Raises:
          ValueError: if reading them so would take far too long.
        """
