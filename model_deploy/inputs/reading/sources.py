"""Sources of examples: arrays in memory, or encoded images read by number."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance


class ArraySource:
    """A source of images of one size, all in memory, read at first use.

    Args:
      read: function that returns `(images, labels)`: uint8 [n, height, width, channels] and
        integers [n].
    """

    def __init__(self, read: Callable[[], tuple[np.ndarray, np.ndarray]]) -> None:
        self._read = read

    @functools.cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Images uint8 [n, height, width, channels] and labels int64 [n].

        Raises:
          ValueError: if the arrays have another rank, dtype or length.
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
    """A source of JPEG or PNG images that are read and decoded one by one, in several threads.

    Attributes:
      tolerance: how many corrupt images may be skipped.
    """

    tolerance: Tolerance

    def read(self, index: int) -> tuple[bytes, int]:
        """Returns the encoded image and the label of an example.

        Raises:
          CorruptRecordError: if the example cannot be read.
        """

    def corrupt(self, index: int, reason: str) -> CorruptRecordError:
        """Returns an error that says what is wrong with an example, and in which file."""


@runtime_checkable
class GraphSource(EncodedSource, Protocol):
    """An `EncodedSource` whose examples TensorFlow's ops can read as well, without Python.

    Examples that the ops fail to read are read again by `read`, whose errors name them.

    Attributes:
      is_local: whether the files are on this machine; other files are read many at a time.
    """

    is_local: bool

    def tables(self) -> Sequence[np.ndarray]:
        """Returns the arrays in which the ops look up examples, shared by all clones."""

    def read_in_graph(self, tables: Sequence[Any], index: Any) -> Any:
        """Returns the stored bytes of an example, string [].

        Args:
          tables: the tensors of `tables`.
          index: int64 [], the number of the example.
        """

    def parse_in_graph(self, tables: Sequence[Any], stored: Any, index: Any) -> tuple[Any, Any]:
        """Returns the encoded image, string [], and the label, int64 [], of `stored`."""


Source = ArraySource | EncodedSource
