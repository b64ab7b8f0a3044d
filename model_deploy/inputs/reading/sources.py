"""Where examples come from: arrays in memory, or encoded images read by number."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance


class ArraySource:
    """Images of one size, all in memory, read once when they are first needed.

    Args:
      read: returns `(images, labels)`: uint8 [n, height, width, channels] and integers [n].
    """

    def __init__(self, read: Callable[[], tuple[np.ndarray, np.ndarray]]) -> None:
        self._read = read

    @functools.cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Images uint8 [n, height, width, channels] and labels int64 [n].

        Raises:
          ValueError: if the arrays have another rank, type or number than that.
        """
        images, labels = self._read()
        if images.ndim != 4 or images.dtype != np.uint8:
            raise ValueError(
                "images must be uint8 [n, height, width, channels], "
                f"got {images.dtype} {list(images.shape)}"
            )
        if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu":
            raise ValueError(
                f"labels must be {len(images)} integers, one per image, "
                f"got {labels.dtype} {list(labels.shape)}"
            )
        return images, labels.astype(np.int64)


@runtime_checkable
class EncodedSource(Protocol):
    """JPEG or PNG images that are read and decoded one by one, by several threads.

    Attributes:
      tolerance: how many corrupt ones are skipped.
    """

    tolerance: Tolerance

    def read(self, index: int) -> tuple[bytes, int]:
        """The encoded image and the label of an example.

        Raises:
          CorruptRecordError: if there is none.
        """

    def corrupt(self, index: int, reason: str) -> CorruptRecordError:
        """The error that says what is wrong with an example, and in which file it is."""


@runtime_checkable
class GraphSource(EncodedSource, Protocol):
    """An `EncodedSource` whose examples TensorFlow's ops can read, too, without any Python.

    What the ops cannot read is read once more by `read`, which knows what to say about it.

    Attributes:
      is_local: whether the files are on this machine; the others are waited for, many at a time.
    """

    is_local: bool

    def tables(self) -> Sequence[np.ndarray]:
        """The arrays that the ops look examples up in; they enter the graph once for all clones."""

    def read_in_graph(self, tables: Sequence[Any], index: Any) -> Any:
        """The stored bytes of an example, string [].

        Args:
          tables: the tensors of `tables`.
          index: int64 [], the number of the example.
        """

    def parse_in_graph(self, tables: Sequence[Any], stored: Any, index: Any) -> tuple[Any, Any]:
        """The encoded image, string [], and the label, int64 [], of what `read_in_graph` gives."""


Source = ArraySource | EncodedSource
