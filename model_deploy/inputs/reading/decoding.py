"""Decodes JPEG and PNG images from Python, with errors that can be caught.

In a `tf.data` pipeline an image that does not decode ends the run with an error that does not name
the image.  A `Decoder` runs TensorFlow's decoder in a small session, for callers that know the
file.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from model_deploy.commands import line_of
from model_deploy.inputs.files import raw_images
from model_deploy.inputs.reading.sources import EncodedSource

tf1 = tf.compat.v1


def whole_image(channels: int, raw_shape: raw_images.Shape | None = None) -> Callable[[Any], Any]:
    """Returns a function from a stored image, string [], to uint8 [h, w, channels].

    Args:
      channels: 1 or 3, or 0 to keep the image's.
      raw_shape: (height, width, channels) of raw images; None for encoded images.
    """
    if raw_shape is not None:
        return raw_images.image_reader(raw_shape, channels)
    return lambda contents: tf.io.decode_image(contents, channels, expand_animations=False)


class Decoder:
    """Decodes one image at a time, in any number of threads.

    Args:
      channels: 1 or 3, or 0 to keep the image's.
      crop: decodes only a part: `crop(contents, seed, channels)`, of a string [] and a seed int64
        [2], returns uint8 [h, w, channels]; see `Preprocessing.crop_encoded`.
      raw_shape: see `whole_image`.
    """

    def __init__(
        self,
        channels: int,
        crop: Callable[..., Any] | None = None,
        raw_shape: raw_images.Shape | None = None,
    ) -> None:
        with tf.Graph().as_default() as graph:
            contents = tf1.placeholder(tf.string, [])
            seed = tf1.placeholder(tf.int64, [2])
            if crop is None:
                image = whole_image(channels, raw_shape)(contents)
            else:
                image = crop(contents, seed, channels)
            self._run = session(graph).make_callable(image, [contents, seed])

    def __call__(self, contents: bytes, seed: np.ndarray | None = None) -> np.ndarray:
        """Decodes an image, uint8 [h, w, channels].

        Args:
          contents: JPEG or PNG, or the bytes of a raw image.
          seed: int64 [2], for a decoder that crops; by default zeros.

        Raises:
          ValueError: if the image does not decode.
        """
        try:
            return self._run(contents, np.zeros([2], np.int64) if seed is None else seed)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(f"its image does not decode: {line_of(error)}") from error


def read_image(
    source: EncodedSource,
    index: int,
    decode: Callable[..., np.ndarray],
    shape: tuple[int | None, int | None, int | None] = (None, None, None),
    seed: np.ndarray | None = None,
) -> tuple[np.ndarray, int]:
    """Reads and decodes an example: its image, uint8 [h, w, channels], and its label.

    Args:
      source: the source of the example.
      index: number of the example.
      decode: a `Decoder` or similar function.
      shape: required shape of the image; None for any size.
      seed: int64 [2], for a decoder that crops.

    Raises:
      CorruptRecordError: if reading or decoding fails, or the image has another shape.
    """
    contents, label = source.read(index)
    try:
        image = decode(contents, seed)
    except ValueError as error:
        raise source.corrupt(index, str(error)) from error
    if any(want not in (None, size) for want, size in zip(shape, image.shape, strict=True)):
        raise source.corrupt(index, f"its image must be {list(shape)}, got {list(image.shape)}")
    return image, label


def decode_many(
    contents: Sequence[bytes],
    shape: tuple[int, int, int],
    raw_shape: raw_images.Shape | None = None,
) -> np.ndarray:
    """Decodes images of the same shape at once: uint8 [n, *shape].

    Args:
      contents: the stored images.
      shape: (height, width, channels).
      raw_shape: see `whole_image`.

    Raises:
      ValueError: if an image, which is not named, does not decode or has another shape.
    """
    with tf.Graph().as_default() as graph:
        encoded = tf1.placeholder(tf.string, [None])
        decode_one = whole_image(shape[-1], raw_shape)

        def decode(one: Any) -> Any:
            return tf.ensure_shape(decode_one(one), shape)

        images = tf.map_fn(decode, encoded, fn_output_signature=tf.TensorSpec(shape, tf.uint8))
        with session(graph) as running:
            try:
                return running.run(images, {encoded: np.array(contents, dtype=object)})
            except tf.errors.InvalidArgumentError as error:
                raise ValueError(f"an image does not decode: {line_of(error)}") from error


def session(graph: Any) -> Any:
    """Returns a session whose ops run in the calling thread, without a GPU."""
    # A negative number runs everything in the calling thread: the thread pool, which all sessions
    # share, may be full of pipelines that wait for this decoder.
    config = tf1.ConfigProto(inter_op_parallelism_threads=-1, device_count={"GPU": 0})
    return tf1.Session(graph=graph, config=config)
