"""The `cifarnet` family: shift, mirror, brightness, contrast; then standardized.

After A. Krizhevsky's cuda-convnet.  Whole batches are augmented at once: one gather shifts and
mirrors all images; one multiplication and addition does brightness, contrast and standardization,
which are affine in the pixels of a channel, with coefficients computed from the channels' means and
variances.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model_deploy.inputs.order.randomness import uniform_per_image
from model_deploy.inputs.preprocessing import families, images

PADDING = 4
CROP_DRAWS = 3  # position down and across, mirroring
_MAX_BRIGHTNESS = 63.0
_CONTRAST = (0.2, 1.8)
_RULE_OF_SIZE = "{} must be at most that of the padded images, got {}"
_RULE_OF_PADDING = "padding (crop_padding) must be less than the pixels of an image, got {}"


def evaluate(batch: Any, height: int, width: int, *, use_grayscale: bool = False) -> Any:
    """Crops and standardizes: uint8 [n, h, w, c] to float32 [n, height, width, c].

    Images are cropped or zero-padded around the centre; then the image's mean is subtracted, and
    the result divided by the larger of its standard deviation and 1/sqrt(number of values).
    """
    part = images.central_part(batch, height, width, use_grayscale=use_grayscale)
    return tf.image.per_image_standardization(part)


def train(
    batch: Any,
    height: int,
    width: int,
    seeds: Any,
    *,
    crop_image: bool = True,
    use_grayscale: bool = False,
    extra_augment: Callable[[Any], Any] | None = None,
    padding: int = PADDING,
) -> Any:
    """Shifts by up to `padding` pixels, mirrors, changes brightness and contrast; standardizes.

    Args:
      batch: uint8 [n, h, w, c].
      height: height of the result, at most that of the padded images.
      width: width of the result, at most that of the padded images.
      seeds: int64 [n, 2].
      crop_image: whether to shift and mirror, which `crop` may have done.
      use_grayscale: whether to convert colours to one grey channel.
      extra_augment: applied to the images before they are normalized; see `Preprocessing`.
      padding: number of zeros on each side of an image.

    Returns:
      float32 [n, height, width, c].

    Raises:
      ValueError: if the size to cut is larger than the padded images.
    """
    draws = uniform_per_image(seeds, CROP_DRAWS + 2)
    if crop_image:
        batch = shift_and_mirror(batch, height, width, draws[:, :CROP_DRAWS], padding)
    batch = batch if extra_augment is None else extra_augment(batch)
    return distort(batch, draws[:, CROP_DRAWS:], use_grayscale=use_grayscale)


def crop(
    image: Any,
    height: int,
    width: int,
    *,
    draws: Any = None,
    padding: int = PADDING,
    reflect: bool = False,
) -> Any:
    """Crops around the centre, as `evaluate`; with `draws` shifts and mirrors, as `train`.

    Args:
      image: uint8 [h, w, c].
      height: height of the result, in training at most that of the padded image.
      width: width of the result, in training at most that of the padded image.
      draws: the first random numbers of the image's seed, float32 [3]; see `shift_and_mirror`.
      padding: see `train`.
      reflect: see `shift_and_mirror`.

    Returns:
      uint8 [height, width, c].  An image that is too small for it, or for a reflected padding,
      ends the session's run with InvalidArgumentError.
    """
    if draws is None:
        return images.crop_centre(image, height, width)
    if reflect:
        is_smaller = padding < tf.shape(image)[:2]
        image = images.checked(image, is_smaller, _RULE_OF_PADDING.format(padding))
    # For an image alone fewer ops than those of `shift_and_mirror`, which count by their number.
    around = [[padding, padding], [padding, padding], [0, 0]]
    image = tf.pad(image, around, "REFLECT" if reflect else "CONSTANT")
    size, wanted = tf.shape(image)[:2], [height, width]
    rule = _RULE_OF_SIZE.format("height and width", wanted)
    size = images.checked(size, wanted <= size, rule)
    fits = tf.cast(size - [height - 1, width - 1], tf.float32)
    start = tf.cast(tf.floor(draws[:2] * fits), tf.int32)
    part = tf.slice(image, tf.concat([start, [0]], axis=0), [*wanted, image.shape[-1]])
    return images.mirror(part, draws[2])


FAMILY = families.Preprocessing(
    "cifarnet",
    train,
    evaluate,
    batched=True,
    takes_extra_augment=True,
    takes_padding=True,
    crop=crop,
    num_draws=CROP_DRAWS,
)


def shift_and_mirror(
    batch: Any,
    height: int,
    width: int,
    draws: Any,
    padding: int = PADDING,
    *,
    reflect: bool = False,
) -> Any:
    """Crops a random part of the padded images, mirrored half of the time.

    Args:
      batch: uint8 or float32 [n, h, w, c].  The images are not really padded, which would take as
        long as the one gather that does everything.
      height: height of the part.
      width: width of the part.
      draws: random numbers, float32 [n, 3], from 0 to 1: position down and across, mirroring.
      padding: number of pixels of padding on each side.
      reflect: whether the padding is the image mirrored at its edge; zeros if not.

    Returns:
      [n, height, width, c] of the same type.

    Raises:
      ValueError: if the part is larger than the padded images, or a reflected padding is not
        smaller than the image.
    """
    shape = tf.shape(batch)
    known = batch.shape.as_list()
    channels = known[3] or shape[3]
    size = known[1] or shape[1], known[2] or shape[2]
    rows = _window(draws[:, 0], size[0], height, padding, "height")
    columns = _window(draws[:, 1], size[1], width, padding, "width")
    if reflect:
        rows, columns = (
            _reflected(each, limit, padding)
            for each, limit in zip((rows, columns), size, strict=True)
        )
    columns = tf.where(draws[:, 2:3] < 0.5, columns, columns[:, ::-1])
    # All pixels in one row, after a zero for the padding; a place outside of the image is so far
    # below zero that it stays there when the other axis is added.
    images_before = tf.range(shape[0])[:, tf.newaxis] * shape[1]
    first = _or_far_below(rows, size[0], (images_before + rows) * shape[2] + 1)
    columns = _or_far_below(columns, size[1], columns)
    pixels = tf.maximum(first[:, :, tf.newaxis] + columns[:, tf.newaxis, :], 0)
    flat = tf.reshape(batch, [-1, channels])
    return tf.gather(tf.concat([tf.zeros([1, channels], batch.dtype), flat], axis=0), pixels)


def _window(draws: Any, size: Any, wanted: int, padding: int, name: str) -> Any:
    """Returns neighbouring places from a random start, int32 [n, wanted], some in the padding."""
    padded = size + 2 * padding
    if isinstance(padded, int) and wanted > padded:
        raise ValueError(
            f"{name} must be at most {padded}, that of the padded images, got {wanted}"
        )
    # Also for a size that is known only when the graph runs.
    padded = images.checked(padded, wanted <= padded, _RULE_OF_SIZE.format(name, wanted))
    fits = tf.cast(padded - wanted + 1, tf.float32)
    start = tf.cast(tf.floor(draws * fits), tf.int32) - padding
    return start[:, tf.newaxis] + tf.range(wanted)


def _or_far_below(places: Any, size: Any, offsets: Any) -> Any:
    """Returns the offsets, far below zero for places outside of an image."""
    return tf.where((places >= 0) & (places < size), offsets, tf.int32.min // 2)


def _reflected(places: Any, size: Any, padding: int) -> Any:
    """Reflects places outside of an image at its edge, without repeating the edge."""
    if isinstance(size, int) and padding >= size:
        raise ValueError(f"padding must be less than the {size} pixels of an image, got {padding}")
    places = tf.abs(images.checked(places, padding < size, _RULE_OF_PADDING.format(padding)))
    return tf.where(places < size, places, 2 * (size - 1) - places)


def distort(batch: Any, draws: Any, *, use_grayscale: bool = False) -> Any:
    """Changes brightness and contrast, then standardizes each image.

    Args:
      batch: uint8 or float32 [n, h, w, c].
      draws: random numbers, float32 [n, 2], from 0 to 1: brightness and contrast.
      use_grayscale: whether to convert colours to one grey channel.

    Returns:
      float32 [n, h, w, c].
    """
    # Shifting all values does not change standardized images; with zero in the middle of the
    # values, sums of squares lose less to rounding.
    if batch.dtype == tf.uint8:
        centred = tf.bitcast(tf.bitwise.bitwise_xor(batch, tf.constant(128, tf.uint8)), tf.int8)
        batch = tf.cast(centred, tf.float32)
    else:
        batch -= tf.reduce_mean(batch, axis=[1, 2, 3], keepdims=True)
    if use_grayscale:
        batch = images.to_grey(batch)
    brightness = (draws[:, 0] * 2 - 1) * _MAX_BRIGHTNESS
    contrast = _CONTRAST[0] + draws[:, 1] * (_CONTRAST[1] - _CONTRAST[0])
    return distort_and_standardize(batch, brightness, contrast)


def distort_and_standardize(batch: Any, brightness: Any, contrast: Any) -> Any:
    """Adds brightness, scales around each channel's mean, standardizes each image.

    With x a pixel, m its channel's mean, b the brightness and f the contrast, the
    distorted pixel is f (x - m) + m + b.  The distorted image has the mean M = mean(m) + b
    and the variance f^2 mean(v) + variance(m), where v are the channels' variances.

    Args:
      batch: float32 [n, h, w, c], with values around zero.
      brightness: float32 [n].
      contrast: float32 [n].

    Returns:
      float32 [n, h, w, c].
    """
    shape = tf.shape(batch)
    pixels = tf.reshape(batch, [shape[0], shape[1] * shape[2], shape[3]])
    num_pixels = tf.cast(shape[1] * shape[2], tf.float32)
    # Matrix products: twice as fast as tf.nn.moments.
    means = tf.matmul(tf.ones_like(pixels[:, :, :1]), pixels, transpose_a=True) / num_pixels
    squares = tf.linalg.diag_part(tf.matmul(pixels, pixels, transpose_a=True)) / num_pixels
    variances = tf.maximum(squares[:, tf.newaxis] - tf.square(means), 0.0)
    brightness, contrast = (each[:, tf.newaxis, tf.newaxis] for each in (brightness, contrast))
    image_mean, spread = tf.nn.moments(means + brightness, axes=[2], keepdims=True)
    variance = tf.square(contrast) * tf.reduce_mean(variances, axis=2, keepdims=True) + spread
    num_values = tf.cast(shape[1] * shape[2] * shape[3], tf.float32)
    scale = 1.0 / tf.maximum(tf.sqrt(variance), tf.math.rsqrt(num_values))
    gain = contrast * scale
    offset = (means + brightness - image_mean) * scale - means * gain
    # Over whole rows of pixels: broadcasting over three channels would take five times as long.
    offset = tf.tile(offset, [1, 1, shape[2]])
    rows = tf.reshape(batch, [shape[0], shape[1], shape[2] * shape[3]])
    return tf.reshape(rows * gain + offset, shape)
