"""Decodes JPEG and PNG images from Python, with errors that can be caught.

In a `tf.data` pipeline an image that does not decode stops the run with an error that
does not say which image it was.  A decoder runs TensorFlow's decoder in a small session of
its own, for whoever read the image and knows its file.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from model_deploy.inputs.sources import EncodedSource

tf1 = tf.compat.v1


class Decoder:
    """Decodes one image at a time, in any number of threads.

    Args:
      channels: 1 or 3, or 0 for as many as the image has.
      crop: decodes only a part, `crop(contents, seed, channels)`, of a string [] and with a seed
        int64 [2]: uint8 [h, w, channels]; see `Preprocessing.crop_encoded`.
    """

    def __init__(self, channels: int, crop: Callable[..., Any] | None = None) -> None:
        with tf.Graph().as_default() as graph:
            contents = tf1.placeholder(tf.string, [])
            seed = tf1.placeholder(tf.int64, [2])
            if crop is None:
                image = tf.io.decode_image(contents, channels, expand_animations=False)
            else:
                image = crop(contents, seed, channels)
            self._run = _session(graph).make_callable(image, [contents, seed])

    def __call__(self, contents: bytes, seed: np.ndarray | None = None) -> np.ndarray:
        """The image, uint8 [h, w, channels].

        Args:
          contents: JPEG or PNG.
          seed: int64 [2], for a decoder that crops; by default zeros.

        Raises:
          ValueError: if it does not decode.
        """
        try:
            return self._run(contents, np.zeros([2], np.int64) if seed is None else seed)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(f"its image does not decode: {_first_line(error)}") from error


def read_image(
    source: EncodedSource,
    index: int,
    decode: Callable[..., np.ndarray],
    shape: tuple[int | None, int | None, int | None] = (None, None, None),
    seed: np.ndarray | None = None,
) -> tuple[np.ndarray, int]:
    """Reads and decodes an example: its image, uint8 [h, w, channels], and its label.

    Args:
      source: where it is.
      index: its number.
      decode: a decoder of the kind of `Decoder`.
      shape: what the image must have; None where any size will do.
      seed: int64 [2], for a decoder that crops.

    Raises:
      CorruptRecordError: if that fails, or the image has another shape.
    """
    contents, label = source.read(index)
    try:
        image = decode(contents, seed)
    except ValueError as error:
        raise source.corrupt(index, str(error)) from error
    if any(want not in (None, size) for want, size in zip(shape, image.shape, strict=True)):
        raise source.corrupt(index, f"its image must be {list(shape)}, got {list(image.shape)}")
    return image, label


def decode_many(contents: Sequence[bytes], shape: tuple[int, int, int]) -> np.ndarray:
    """Decodes images that must all have the same shape, in one go: uint8 [n, *shape].

    Raises:
      ValueError: if one does not decode or has another shape; it does not say which.
    """
    with tf.Graph().as_default() as graph:
        encoded = tf1.placeholder(tf.string, [None])

        def decode(one: Any) -> Any:
            return tf.ensure_shape(
                tf.io.decode_image(one, shape[-1], expand_animations=False), shape
            )

        images = tf.map_fn(decode, encoded, fn_output_signature=tf.TensorSpec(shape, tf.uint8))
        with _session(graph) as session:
            try:
                return session.run(images, {encoded: np.array(contents, dtype=object)})
            except tf.errors.InvalidArgumentError as error:
                raise ValueError(f"an image does not decode: {_first_line(error)}") from error


def _session(graph: Any) -> Any:
    # A negative number runs everything in the calling thread: the thread pool, which
    # all sessions share, may be full of pipelines that wait for this very decoder.
    config = tf1.ConfigProto(inter_op_parallelism_threads=-1, device_count={"GPU": 0})
    return tf1.Session(graph=graph, config=config)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
