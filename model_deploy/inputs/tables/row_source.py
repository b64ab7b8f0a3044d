"""`RowSource`: rows of files that Python reads by number, many at a time."""

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from model_deploy.inputs.files.corrupt_records import Tolerance
from model_deploy.inputs.order.epochs import Order
from model_deploy.inputs.tables.columns import Column


class Stored(NamedTuple):
    """What `RowSource.read` returns an array of.

    Attributes:
      dtype: of the array, as a `tf.DType`.
      shape: of the array; None for a side that varies.
    """

    dtype: Any
    shape: list[int | None]


class RowSource(abc.ABC):
    """Rows of some files, numbered over all of them.

    Attributes:
      num_rows: how many there are.
      tolerance: the count of skipped rows.
      columns: what batches have, by name.
      is_local: whether all files are on this machine.
    """

    num_rows: int
    tolerance: Tolerance
    columns: dict[str, Column]
    is_local: bool

    @property
    def cached_bytes(self) -> int:
        """Bytes of decoded rows that this process keeps at most."""
        return 0

    @property
    @abc.abstractmethod
    def stored(self) -> Sequence[Stored]:
        """What `read` returns."""

    @abc.abstractmethod
    def read(self, indices: np.ndarray) -> list[np.ndarray]:
        """Reads rows, in several threads at the same time.

        Args:
          indices: int64 [n], numbers of rows, n at least 1.

        Returns:
          An array for each of `stored`.

        Raises:
          ValueError: if one cannot be read; `check` says which and why.
        """

    @abc.abstractmethod
    def parse(self, stored: Sequence[Any]) -> dict[str, Any]:
        """Returns the columns of rows, each a tensor [n], or a `tf.RaggedTensor` [n, None].

        Args:
          stored: the arrays of `read` as tensors.
        """

    @abc.abstractmethod
    def check(self, index: int) -> None:
        """Checks that a row can be read and parsed.

        Raises:
          CorruptRecordError: naming file, row and reason.
        """

    def check_order(self, order: Order) -> None:  # noqa: B027 - most take any order
        """Checks that the rows can be read in an order; see `OwnExamples`."""

    def good_rows(self, indices: np.ndarray, replace: bool) -> np.ndarray:
        """Returns the numbers of rows that stand for some rows, int64 [n]; -1 for none.

        Args:
          indices: int64 [n], the wanted rows.
          replace: whether the next good row replaces a corrupt one.

        Raises:
          CorruptRecordError: if a row is corrupt and no more are tolerated.
          ValueError: if all rows are corrupt.
        """
        found = [
            self.tolerance.first_good(self.check, int(index), self.num_rows, replace=replace)
            for index in indices
        ]
        return np.array([-1 if each is None else each[1] for each in found], np.int64)
