"""Prepares images for conversion: copies them, writes a smaller JPEG, or writes raw pixels.

Images are reduced by area: each new pixel is the mean of the area that it covers.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from model_deploy.checks import check_whole
from model_deploy.inputs.datasets import dataset as dataset_lib
from model_deploy.inputs.files import raw_images
from model_deploy.inputs.reading import decoding, sources

tf1 = tf.compat.v1

_QUALITY = 95


class _Original(NamedTuple):
    """An image of a dataset, uint8 [h, w, c], with its encoded bytes and their format, if any."""

    image: np.ndarray
    label: int
    contents: bytes | None
    kind: str


class _Written(NamedTuple):
    """The bytes written for an image, their format, and the shape of the image."""

    contents: bytes
    kind: str
    shape: Sequence[int]


@dataclasses.dataclass(frozen=True)
class Preparation:
    """The settings for writing the images of a dataset.

    Attributes:
      max_side: largest side in pixels to which images are reduced; None for no limit.
      quality: quality of reduced JPEGs; None for 95.
      raw: whether to crop and scale images to one size and write raw bytes.
      image_size: size of raw images, a side or (height, width); None for the dataset's.

    Raises:
      ValueError: for a number out of range, or a setting without the one that it requires.
    """

    max_side: int | None = None
    quality: int | None = None
    raw: bool = False
    image_size: int | tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.max_side is not None:
            check_whole("max_side", self.max_side, 1)
        if self.quality is not None:
            check_whole("quality", self.quality, 1)
            if self.quality > 100:
                raise ValueError(f"quality must be at most 100, got {self.quality}")
            if self.max_side is None:
                raise ValueError(f"quality must come with max_side, got {self.quality} without it")
        if self.raw and self.max_side is not None:
            raise ValueError(
                f"max_side must not come with raw, whose size is image_size, got {self.max_side}"
            )
        if self.image_size is None:
            return
        if not self.raw:
            raise ValueError(f"image_size must come with raw, got {self.image_size} without it")
        sides = self.image_size if isinstance(self.image_size, tuple) else (self.image_size,)
        for side in sides:
            check_whole("image_size", side, 1)
        if len(sides) > 2:
            raise ValueError(f"image_size must be a side or (height, width), got {sides}")

    def size(self, dataset: dataset_lib.Dataset) -> tuple[int, int]:
        """Returns height and width of raw images.

        Raises:
          ValueError: if the images vary in size and `image_size` is not given.
        """
        if isinstance(self.image_size, tuple):
            return self.image_size[0], self.image_size[-1]
        height, width, _ = dataset.image_shape
        if self.image_size is not None:
            return self.image_size, self.image_size
        if height is None or width is None:
            raise ValueError(
                f"image_size must be given for raw images of dataset {dataset.name!r}, whose "
                "images vary in size, got None"
            )
        return height, width

    def facts(self, dataset: dataset_lib.Dataset) -> dict[str, Any]:
        """Returns the settings that determine what is written, as JSON values."""
        if self.raw:
            return {"raw": True, "image_size": list(self.size(dataset))}
        if self.max_side is not None:
            return {"max_side": self.max_side, "quality": self.quality or _QUALITY}
        return {}

    def reader(self, dataset: dataset_lib.Dataset) -> Callable[[int], bytes]:
        """Returns a thread-safe function from the number of an example to its record.

        Raises:
          ValueError: as `size`.
        """
        if self.raw:
            write = _raw_writer(self.size(dataset))
        elif self.max_side is not None:
            write = _reduced_writer(self.max_side, self.quality or _QUALITY)
        else:
            write = _writer_as_it_is()
        read = _originals(dataset, dataset.image_shape[-1] or 3 if self.raw else 0)

        def record(index: int) -> bytes:
            original = read(index)
            return _record(write(original), original.label)

        return record


def _originals(dataset: dataset_lib.Dataset, channels: int) -> Callable[[int], _Original]:
    """Returns a function from the number of an example to its image; 0 keeps its channels.

    It raises CorruptRecordError for an example that cannot be read.
    """
    source = dataset.source
    if isinstance(source, sources.ArraySource):
        images, labels = source.arrays
        return lambda index: _Original(images[index], int(labels[index]), None, "")
    raw_shape = raw_images.shape_of(source)
    decode = decoding.Decoder(channels, raw_shape=raw_shape)

    def read(index: int) -> _Original:
        contents, label = source.read(index)
        try:
            image = decode(contents)
        except ValueError as error:
            raise source.corrupt(index, str(error)) from error
        kind = "png" if contents.startswith(b"\x89PNG") else "jpeg"
        return _Original(image, label, contents, raw_images.FORMAT if raw_shape else kind)

    return read


def _writer_as_it_is() -> Callable[[_Original], _Written]:
    """Returns a function that keeps encoded bytes, and encodes other images as PNG."""
    encode = _encoder(tf.io.encode_png)

    def write(original: _Original) -> _Written:
        if original.contents is None:
            return _Written(encode(original.image), "png", original.image.shape)
        return _Written(original.contents, original.kind, original.image.shape)

    return write


def _reduced_writer(max_side: int, quality: int) -> Callable[[_Original], _Written]:
    """Returns a function that writes large images as reduced JPEGs, and keeps others."""
    keep, scale = _writer_as_it_is(), _scaler()
    encode = _encoder(lambda image: tf.io.encode_jpeg(image, quality=quality))

    def write(original: _Original) -> _Written:
        height, width, _ = original.image.shape
        longer = max(height, width)
        if longer <= max_side:
            return keep(original)
        size = [max(1, round(side * max_side / longer)) for side in (height, width)]
        image = scale(_without_alpha(original.image), size)
        return _Written(encode(image), "jpeg", image.shape)

    return write


def _raw_writer(size: tuple[int, int]) -> Callable[[_Original], _Written]:
    """Returns a function that crops and scales an image to `size` and writes raw bytes."""
    scale = _scaler()

    def write(original: _Original) -> _Written:
        image = _without_alpha(original.image)
        if image.shape[:2] != size:
            image = scale(_central_part(image, size), size)
        return _Written(image.tobytes(), raw_images.FORMAT, image.shape)

    return write


def _central_part(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Returns the largest central part with the proportions of `size`."""
    height, width, _ = image.shape
    times = min(height / size[0], width / size[1])
    part = [max(1, round(side * times)) for side in size]
    top, left = (height - part[0]) // 2, (width - part[1]) // 2
    return image[top : top + part[0], left : left + part[1]]


def _without_alpha(image: np.ndarray) -> np.ndarray:
    """Returns grey or colours, [h, w, 1 or 3], without an alpha channel."""
    channels = image.shape[-1]
    return image if channels in raw_images.CHANNELS else image[..., : channels - 1]


def _encoder(encode: Callable[[Any], Any]) -> Callable[[np.ndarray], bytes]:
    with tf.Graph().as_default() as graph:
        image = tf1.placeholder(tf.uint8, [None, None, None])
        run: Callable[[np.ndarray], bytes] = decoding.session(graph).make_callable(
            encode(image), [image]
        )
        return run


def _scaler() -> Callable[[np.ndarray, Sequence[int]], np.ndarray]:
    """Returns a function that scales an image, uint8 [h, w, c], to a size.

    Images are reduced by area; if a side grows the image is interpolated.
    """
    with tf.Graph().as_default() as graph:
        image = tf1.placeholder(tf.uint8, [None, None, None])
        size = tf1.placeholder(tf.int32, [2])
        runs = []
        for method in ("area", "bilinear"):
            pixels = tf.round(tf.image.resize(image, size, method))
            result = tf.saturate_cast(pixels, tf.uint8)
            runs.append(decoding.session(graph).make_callable(result, [image, size]))

    def scale(value: np.ndarray, wanted: Sequence[int]) -> np.ndarray:
        grows = wanted[0] > value.shape[0] or wanted[1] > value.shape[1]
        scaled: np.ndarray = runs[grows](value, wanted)
        return scaled

    return scale


def _record(written: _Written, label: int) -> bytes:
    def numbers(value: int) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))

    def text(value: bytes) -> tf.train.Feature:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    features = {
        "image/encoded": text(written.contents),
        "image/format": text(written.kind.encode()),
        "image/class/label": numbers(label),
        "image/height": numbers(written.shape[0]),
        "image/width": numbers(written.shape[1]),
    }
    if written.kind == raw_images.FORMAT:
        features["image/channels"] = numbers(written.shape[2])
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
