"""`RowGroups`: decoded row groups, the latest of them kept in bounded memory."""

import collections
import concurrent.futures
import threading
from collections.abc import Callable

from model_deploy.inputs.tables.parquet_rows import Rows


class RowGroups:
    """Reads row groups by number, in several threads, each group once while it is kept.

    Args:
      read: reads and decodes a row group.
      max_bytes: how much is kept; the row group that was read last is kept in any case.

    Attributes:
      num_reads: how many row groups have been read.
    """

    def __init__(self, read: Callable[[int], Rows], max_bytes: int) -> None:
        self._read, self._max_bytes = read, max_bytes
        self._kept: collections.OrderedDict[int, concurrent.futures.Future[Rows]]
        self._kept = collections.OrderedDict()
        self._sizes: dict[int, int] = {}
        self._lock = threading.Lock()
        self.num_reads = 0

    def __getitem__(self, number: int) -> Rows:
        """Returns a row group; reads it unless it is kept, or being read.

        Raises:
          ValueError: if it cannot be read.
        """
        with self._lock:
            future = self._kept.get(number)
            is_new = future is None
            if future is None:
                future = self._kept[number] = concurrent.futures.Future()
                self.num_reads += 1
            self._kept.move_to_end(number)
        if is_new:
            self._fill(number, future)
        return future.result()

    def _fill(self, number: int, future: "concurrent.futures.Future[Rows]") -> None:
        try:
            rows = self._read(number)
        except BaseException as error:
            with self._lock:
                del self._kept[number]
            future.set_exception(error)
            return
        future.set_result(rows)
        with self._lock:
            self._sizes[number] = rows.num_bytes
            for other in [each for each in self._kept if each in self._sizes and each != number]:
                if sum(self._sizes.values()) <= self._max_bytes:
                    break
                del self._kept[other], self._sizes[other]
