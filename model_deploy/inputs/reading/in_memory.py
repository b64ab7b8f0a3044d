"""Decodes all images of a dataset at once, to keep them in memory."""

import concurrent.futures
from collections.abc import Sequence

import numpy as np

from model_deploy.inputs.files import raw_images
from model_deploy.inputs.files.corrupt_records import CorruptRecordError
from model_deploy.inputs.reading import chunks, decoding
from model_deploy.inputs.reading.sources import EncodedSource

MAX_BYTES = 2**30
_DECODED_AT_ONCE = 512


def fits(
    num_examples: int, shape: tuple[int | None, int | None, int | None]
) -> tuple[int, int, int] | None:
    """Returns the shape if it is the same for all images and they take at most 1 GiB, else None."""
    height, width, channels = shape
    if height is None or width is None or channels is None:
        return None
    size = num_examples * height * width * channels
    return (height, width, channels) if size <= MAX_BYTES else None


def decode_all(
    source: EncodedSource, num_examples: int, shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Decodes images and labels of all examples, without corrupt ones that are tolerated.

    Args:
      source: the source of the examples.
      num_examples: number of examples.
      shape: (height, width, channels) of each image.

    Returns:
      Images, uint8 [n, height, width, channels], and labels, int64 [n].

    Raises:
      CorruptRecordError: if more records are corrupt than are tolerated.
    """

    def decode(first: int) -> tuple[np.ndarray, np.ndarray]:
        return _decode_some(
            source, range(first, min(first + _DECODED_AT_ONCE, num_examples)), shape
        )

    with concurrent.futures.ThreadPoolExecutor(chunks.usable_cores()) as pool:
        parts = list(pool.map(decode, range(0, num_examples, _DECODED_AT_ONCE)))
    images, labels = zip(*parts, strict=True)
    return np.concatenate(images), np.concatenate(labels)


def _decode_some(
    source: EncodedSource, indices: Sequence[int], shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Decodes examples at once; one by one if any of them is corrupt."""
    try:
        encoded, labels = zip(*[source.read(index) for index in indices], strict=True)
        return decoding.decode_many(encoded, shape, raw_images.shape_of(source)), np.array(
            labels, np.int64
        )
    except ValueError:
        return _decode_one_by_one(source, indices, shape)


def _decode_one_by_one(
    source: EncodedSource, indices: Sequence[int], shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Decodes more slowly, but knows which records are corrupt."""
    decode = decoding.Decoder(shape[-1], raw_shape=raw_images.shape_of(source))
    images, labels = [], []
    for index in indices:
        try:
            image, label = decoding.read_image(source, index, decode, shape)
        except CorruptRecordError as error:
            source.tolerance.skip(error)
        else:
            images.append(image)
            labels.append(label)
    return np.array(images, np.uint8).reshape([-1, *shape]), np.array(labels, np.int64)
