"""Raw images: stored as their bytes, so that reading them needs no decoding.

As in TF-Slim, `image/format` of a record is then "raw", `image/encoded` has the bytes row by row,
and `image/height`, `image/width` and `image/channels` have the shape.  All images of a dataset have
the shape of its first valid record.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError

from model_deploy.inputs.files.records import RecordFile

FORMAT = "raw"
CHANNELS = (1, 3)
_SIZES = ("image/height", "image/width", "image/channels")

Shape = tuple[int, int, int]


def shape_of(source: Any) -> Shape | None:
    """Returns the (height, width, channels) of a source of raw images; None for other sources."""
    shape: Shape | None = getattr(source, "raw_shape", None)
    return shape


def is_raw(features: Mapping[str, Any]) -> bool:
    """Whether the features of a `tf.train.Example` are those of a raw image."""
    # `get`, as [...] would add the feature to the message.
    feature = features.get("image/format") or tf.train.Feature()
    values = feature.bytes_list.value
    return len(values) == 1 and values[0].lower() == FORMAT.encode()


def checked_shape(features: Mapping[str, Any], num_bytes: int) -> Shape:
    """Returns the (height, width, channels) of a raw image.

    Args:
      features: features of the `tf.train.Example`.
      num_bytes: number of bytes of the image.

    Raises:
      ValueError: if the features lack the shape, or it does not fit the number of bytes.
    """
    sizes = []
    for name in _SIZES:
        values = (features.get(name) or tf.train.Feature()).int64_list.value
        if len(values) != 1:
            raise ValueError(f"{name} of a raw image must have 1 value, got {len(values)}")
        sizes.append(int(values[0]))
    height, width, channels = sizes
    if min(height, width) < 1 or channels not in CHANNELS:
        raise ValueError(
            "a raw image must have a height and a width of at least 1 and 1 or 3 channels, "
            f"got {sizes}"
        )
    if num_bytes != height * width * channels:
        raise ValueError(
            f"a raw image of {height} x {width} x {channels} must have "
            f"{height * width * channels} bytes, got {num_bytes}"
        )
    return height, width, channels


def find_shape(files: Sequence[RecordFile], tries: int) -> Shape | None:
    """Returns the shape of the first valid record; None if that is not a raw image.

    Args:
      files: the files of a dataset.
      tries: maximum number of records to try.
    """
    places = ((file, record) for file in files for record in range(len(file.offsets)))
    for _, (file, record) in zip(range(tries), places, strict=False):
        try:
            features = tf.train.Example.FromString(file.read(record)).features.feature
            encoded = features["image/encoded"].bytes_list.value
            if len(encoded) == 1:
                return checked_shape(features, len(encoded[0])) if is_raw(features) else None
        except (ValueError, DecodeError):
            continue  # a corrupt record is reported later, when it is read
    return None


def features_in_graph() -> dict[str, Any]:
    """Returns the features that `is_good` needs, for `tf.io.parse_single_example`."""
    return {"image/format": tf.io.FixedLenFeature([], tf.string)} | {
        name: tf.io.FixedLenFeature([], tf.int64) for name in _SIZES
    }


def is_good(features: Mapping[str, Any], shape: Shape) -> Any:
    """Whether the features of a record are those of a raw image of a given shape, bool []."""
    sizes = tf.stack([features[name] for name in _SIZES])
    return tf.reduce_all(tf.equal(sizes, shape)) & tf.equal(
        tf.strings.lower(features["image/format"]), FORMAT
    )


def image_reader(shape: Shape, channels: int) -> Callable[[Any], Any]:
    """Returns a function from an image's bytes, string [], to the image, uint8 [h, w, channels].

    Args:
      shape: shape of the stored image.
      channels: 1 or 3, or 0 to keep the stored number.
    """
    change = {(1, 3): tf.image.grayscale_to_rgb, (3, 1): tf.image.rgb_to_grayscale}

    def read(contents: Any) -> Any:
        image = tf.reshape(tf.io.decode_raw(contents, tf.uint8), shape)
        return change.get((shape[-1], channels), tf.identity)(image)

    return read
