"""`Reader`: reads encoded images inside of a pipeline, and skips or replaces corrupt ones."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from model_deploy.inputs.reading import decoding
from model_deploy.inputs.reading.sources import EncodedSource


@dataclasses.dataclass(frozen=True)
class Reader:
    """Reads examples by number.

    Attributes:
      source: the source of the examples.
      num_examples: number of examples.
      shape: required shape of each image; None for any size.
      decode: decodes an image, see `decoding.Decoder`.
      replace: whether the next good example replaces a tolerated corrupt one, so that later batches
        of a training are not changed.
    """

    source: EncodedSource
    num_examples: int
    shape: tuple[int | None, int | None, int | None]
    decode: Callable[..., np.ndarray]
    replace: bool

    def in_graph(self, index: Any, seed: Any) -> tuple[Any, Any, Any, Any]:
        """Reads one example when the graph runs.

        Args:
          index: int64 [], number of the example.
          seed: int64 [2], for a decoder that crops.

        Returns:
          `(image, label, index, found)`: uint8 [h, w, c], int64 [], the number of the example that
          was read, int64 [], and whether one was read, bool [].
        """
        outputs = tf.numpy_function(
            self.read, [index, seed], [tf.uint8, tf.int64, tf.int64, tf.bool]
        )
        for tensor, shape in zip(outputs, ([None] * 3, [], [], []), strict=True):
            tensor.set_shape(shape)
        return tuple(outputs)

    def read(self, index: np.int64, seed: np.ndarray) -> tuple[Any, ...]:
        """Reads one example by Python; returns the values of `in_graph` as NumPy's.

        Args:
          index: the number of the example.
          seed: int64 [2], for a decoder that crops.

        Raises:
          CorruptRecordError: if a record is corrupt and no more are tolerated.
          ValueError: if all records are corrupt.
        """
        found = self.source.tolerance.first_good(
            lambda place: decoding.read_image(self.source, place, self.decode, self.shape, seed),
            int(index),
            self.num_examples,
            replace=self.replace,
        )
        if found is not None:
            (image, label), place = found
            return image, np.int64(label), np.int64(place), np.bool_(True)
        return (
            np.zeros([1, 1, max(1, self.shape[-1] or 0)], np.uint8),
            np.int64(-1),
            index,
            np.bool_(False),
        )
