"""Records that cannot be read: how they are named, and how many are tolerated."""

import threading
from collections.abc import Callable
from typing import TypeVar

from absl import logging

from model_deploy.checks import check_at_least

_Example = TypeVar("_Example")


class CorruptRecordError(ValueError):
    """An example that cannot be read.

    Attributes:
      path: the file that it is in.
      record: its number in the file, from 0.
    """

    def __init__(self, path: str, record: int, reason: str) -> None:
        super().__init__(f"{path}: record {record} (from 0): {reason}")
        self.path = path
        self.record = record


class Tolerance:
    """Counts corrupt records, and reports each of them, up to a limit.

    Attributes:
      limit: how many different ones are tolerated.

    Raises:
      ValueError: if the limit is below 0.
    """

    def __init__(self, limit: int = 0) -> None:
        check_at_least("skip_corrupt_records", limit, 0)
        self.limit = limit
        self._skipped: dict[tuple[str, int], str] = {}
        self._lock = threading.Lock()  # records are read by several threads

    @property
    def skipped(self) -> tuple[str, ...]:
        """What was wrong with each record that was skipped."""
        return tuple(self._skipped.values())

    def first_good(
        self, read: Callable[[int], _Example], index: int, num_examples: int, *, replace: bool
    ) -> tuple[_Example, int] | None:
        """An example and its number; corrupt ones are skipped.

        Args:
          read: reads the example of a number.
          index: the number of the example.
          num_examples: how many there are; the first one follows the last one.
          replace: whether the next good example takes the place of a corrupt one.

        Returns:
          None where the example is corrupt and is not replaced.

        Raises:
          CorruptRecordError: if one is corrupt, and that is one more than the limit.
          ValueError: if all are corrupt and would be replaced.
        """
        for number in range(num_examples if replace else 1):
            place = (index + number) % num_examples
            try:
                return read(place), place
            except CorruptRecordError as error:
                self.skip(error)
        if replace:
            raise ValueError(f"dataset must have a good record, got {num_examples} corrupt ones")
        return None

    def skip(self, error: CorruptRecordError) -> None:
        """Reports the record and lets it be skipped; does so once for each.

        Raises:
          CorruptRecordError: if that makes more of them than the limit.
        """
        with self._lock:
            key = (error.path, error.record)
            if key in self._skipped:
                return
            if len(self._skipped) == self.limit:
                raise error
            self._skipped[key] = str(error)
            logging.warning(
                "Skipped corrupt record %d of at most %d: %s",
                len(self._skipped),
                self.limit,
                error,
            )
