"""Corrupt records: the error that names one, and the count of tolerated ones."""

import threading
from collections.abc import Callable
from typing import TypeVar

from absl import logging

from model_deploy.checks import check_at_least

_Example = TypeVar("_Example")


class CorruptRecordError(ValueError):
    """An example that cannot be read.

    Attributes:
      path: the file with the example.
      record: number of the record in the file, from 0.
    """

    def __init__(self, path: str, record: int, reason: str) -> None:
        super().__init__(f"{path}: record {record} (from 0): {reason}")
        self.path = path
        self.record = record


class Tolerance:
    """Counts and reports corrupt records, and raises beyond a limit.

    Attributes:
      limit: how many different corrupt records are tolerated.

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
        """The errors of all skipped records."""
        return tuple(self._skipped.values())

    def first_good(
        self, read: Callable[[int], _Example], index: int, num_examples: int, *, replace: bool
    ) -> tuple[_Example, int] | None:
        """Reads an example, skipping corrupt ones; returns it with its number.

        Args:
          read: function that reads the example with a number.
          index: number of the wanted example.
          num_examples: number of examples; the first follows the last.
          replace: whether the next good example replaces a corrupt one.

        Returns:
          The example and its number; None for a corrupt example that is not replaced.

        Raises:
          CorruptRecordError: if an example is corrupt and the limit is reached.
          ValueError: if all examples are corrupt and would be replaced.
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
        """Reports a corrupt record, once, and counts it as skipped.

        Raises:
          CorruptRecordError: if the limit is reached.
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
