"""The `inception` family: random crop, stretched, mirrored, colours changed; values -1 to 1.

C. Szegedy et al.: "Going deeper with convolutions", 2014, section 6 (the random crop);
A. Howard: "Some improvements on deep convolutional neural network based image
classification", 2013 (the colours).
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from model_deploy.inputs.order.randomness import uniform
from model_deploy.inputs.preprocessing import families, images

CENTRAL_FRACTION = 0.875
_NUM_DRAWS = 7  # way to scale, mirroring, and the five of `distort_colours`
_METHODS = ("bilinear", "nearest", "bicubic", "area")
COLOUR_ORDERS = (
    ("brightness", "saturation", "hue", "contrast"),
    ("saturation", "brightness", "contrast", "hue"),
    ("contrast", "hue", "brightness", "saturation"),
    ("hue", "saturation", "contrast", "brightness"),
)
# name -> (operation, smallest argument, largest argument)
_COLOURS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "brightness": (tf.image.adjust_brightness, -32 / 255, 32 / 255),
    "saturation": (tf.image.adjust_saturation, 0.5, 1.5),
    "hue": (tf.image.adjust_hue, -0.2, 0.2),
    "contrast": (tf.image.adjust_contrast, 0.5, 1.5),
}


def evaluate(
    image: Any,
    height: int | None,
    width: int | None,
    *,
    crop_image: bool = True,
    central_fraction: float = CENTRAL_FRACTION,
    use_grayscale: bool = False,
) -> Any:
    """Crops the centre and stretches it: [h, w, c] to float32 [height, width, c], -1 to 1.

    Args:
      image: uint8, or float32 from 0 to 1.
      height: height of the result; None (also for the width) keeps the size.
      width: width of the result.
      crop_image: whether to crop the centre first.
      central_fraction: fraction of each side in the crop.
      use_grayscale: whether to convert colours to one grey channel.
    """
    image = tf.image.convert_image_dtype(image, tf.float32)
    if use_grayscale:
        image = images.to_grey(image)
    if crop_image:
        image = tf.image.central_crop(image, central_fraction)
    if height is not None and width is not None:
        image = _resize(image, height, width, "bilinear")
    return centred(image)


def crop_encoded(
    contents: Any, seed: Any, channels: int, smallest: tuple[int, int] | None = None
) -> Any:
    """Decodes the random crop of an image; of a JPEG nothing else is decoded.

    Args:
      contents: string [], JPEG or PNG.
      seed: int64 [2].
      channels: 1 or 3, or 0 to keep the image's.
      smallest: height and width to which the crop of a JPEG may be reduced while it is decoded, by
        2, 4 or 8; by default it is not reduced.

    Returns:
      uint8 [h, w, channels], the same crop that `train` makes of a decoded image.
    """

    def crop_jpeg() -> Any:
        begin, size = random_part(tf.io.extract_jpeg_shape(contents), seed)
        window = tf.concat([begin[:2], size[:2]], axis=0)
        if smallest is None:
            return tf.io.decode_and_crop_jpeg(contents, window, channels)
        return decode_reduced(contents, window, channels, smallest)

    def crop_other() -> Any:
        image = tf.io.decode_image(contents, channels, expand_animations=False)
        return tf.slice(image, *random_part(tf.shape(image), seed))

    return tf.cond(tf.io.is_jpeg(contents), crop_jpeg, crop_other)


def decode_reduced(contents: Any, window: Any, channels: int, smallest: tuple[int, int]) -> Any:
    """Decodes a crop of a JPEG, reduced as far as it stays no smaller than `smallest`.

    Args:
      contents: string [].
      window: top, left, height and width, int32 [4], rounded to reduced pixels.
      channels: 1 or 3, or 0 to keep the image's.
      smallest: minimum height and width.

    Returns:
      uint8 [h, w, channels].
    """
    ratios = (1, 2, 4, 8)
    times = tf.reduce_min(window[2:] // tf.constant(smallest))

    def decode(ratio: int) -> Any:
        return tf.raw_ops.DecodeAndCropJpeg(
            contents=contents, crop_window=window // ratio, channels=channels, ratio=ratio
        )

    ways = [functools.partial(decode, ratio) for ratio in ratios]
    place = tf.reduce_sum(tf.cast(times >= tf.constant(ratios[1:]), tf.int32))
    return tf.switch_case(place, ways)


def train(
    image: Any,
    height: int,
    width: int,
    seed: Any,
    *,
    draws: Any = None,
    fast_mode: bool = True,
    crop_image: bool = True,
    use_grayscale: bool = False,
    extra_augment: Callable[[Any], Any] | None = None,
) -> Any:
    """Crops at random, stretches, mirrors half of the time, and changes colours.

    Args:
      image: uint8 [h, w, c], or float32 from 0 to 1.
      height: height of the result.
      width: width of the result.
      seed: int64 [2].
      draws: random numbers, float32 [7], from 0 to 1; by default those of the seed.
      fast_mode: bilinear scaling, brightness and saturation only; if not, one of four ways to
        scale and one of four orders of brightness, saturation, hue, contrast.
      crop_image: whether to crop at random.
      use_grayscale: whether to convert colours to one grey channel, at the end.
      extra_augment: applied to the image before its colours are changed; see `Preprocessing`.

    Returns:
      float32 [height, width, c], from -1 to 1.
    """
    if crop_image:
        image = cut_random_part(image, seed)
    image = tf.image.convert_image_dtype(image, tf.float32)
    draws = uniform(seed, _NUM_DRAWS) if draws is None else draws
    image = images.mirror(stretch(image, height, width, draws[0], fast_mode), draws[1])
    if extra_augment is not None:
        image = tf.image.convert_image_dtype(extra_augment(image * 255.0), tf.float32)
    image = distort_colours(image, draws[2:], fast_mode)
    return centred(images.to_grey(image) if use_grayscale else image)


FAMILY = families.Preprocessing(
    "inception",
    train,
    evaluate,
    crop_encoded=crop_encoded,
    takes_extra_augment=True,
    num_draws=_NUM_DRAWS,
)


def random_part(shape: Any, seed: Any) -> tuple[Any, Any]:
    """Returns begin and size, int32 [3] each, of a random crop with 5-100% of the area."""
    begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
        shape,
        bounding_boxes=tf.constant([[[0.0, 0.0, 1.0, 1.0]]]),
        seed=seed,
        min_object_covered=0.1,
        aspect_ratio_range=[0.75, 1.33],
        area_range=[0.05, 1.0],
        max_attempts=100,
        use_image_if_no_bounding_boxes=True,
    )
    return begin, size


def cut_random_part(image: Any, seed: Any) -> Any:
    """Crops the `random_part` of an image [h, w, c] of any dtype, for a seed int64 [2]."""
    channels = image.shape.as_list()[-1]
    image = tf.slice(image, *random_part(tf.shape(image), seed))
    image.set_shape([None, None, channels])
    return image


def stretch(image: Any, height: int, width: int, draw: Any, fast_mode: bool) -> Any:
    """Scales an image without keeping its proportions.

    Args:
      image: float32 [h, w, c].
      height: height of the result.
      width: width of the result.
      draw: random number, float32 [], from 0 to 1: which of four ways to scale.
      fast_mode: always scale bilinearly.

    Returns:
      float32 [height, width, c].
    """
    if fast_mode:
        return _resize(image, height, width, "bilinear")
    ways = [functools.partial(_resize, image, height, width, method) for method in _METHODS]
    return choose(draw, ways)


def centred(image: Any) -> Any:
    """Maps values from 0 to 1 to -1 to 1; any shape."""
    return (image - 0.5) * 2


def _resize(image: Any, height: int, width: int, method: str) -> Any:
    # As in TensorFlow 1, whose ops sample at the corners of pixels.
    channels = image.shape.as_list()[-1]
    image = tf.compat.v1.image.resize(image[tf.newaxis], [height, width], method)[0]
    return tf.ensure_shape(image, [height, width, channels])


def distort_colours(image: Any, draws: Any, fast_mode: bool) -> Any:
    """Changes the colours; of grey images only brightness and contrast.

    Args:
      image: float32 [h, w, c], from 0 to 1.
      draws: random numbers, float32 [5], from 0 to 1: changes of brightness, saturation, hue and
        contrast, and which of four orders to use.
      fast_mode: brightness and saturation only, always in this order.

    Returns:
      float32 [h, w, c], from 0 to 1.
    """
    if image.shape.as_list()[-1] != 3:  # grey images have neither saturation nor hue
        order = ("brightness",) if fast_mode else ("brightness", "contrast")
        return distort_in_order(image, draws, order)
    if fast_mode:
        return distort_in_order(image, draws, ("brightness", "saturation"))
    ways = [functools.partial(distort_in_order, image, draws, order) for order in COLOUR_ORDERS]
    return choose(draws[4], ways)


def distort_in_order(image: Any, draws: Any, order: tuple[str, ...]) -> Any:
    """Applies the changes that `order` names, one after the other.

    Args:
      image: float32 [h, w, c], from 0 to 1.
      draws: float32 [4 or more], as for `distort_colours`.
      order: some of "brightness", "saturation", "hue" and "contrast".

    Returns:
      float32 [h, w, c], from 0 to 1.
    """
    places = {name: place for place, name in enumerate(_COLOURS)}
    for name in order:
        change, smallest, largest = _COLOURS[name]
        image = change(image, smallest + draws[places[name]] * (largest - smallest))
    return tf.clip_by_value(image, 0.0, 1.0)


def choose(draw: Any, ways: Sequence[Callable[[], Any]]) -> Any:
    """Calls one of the ways, chosen uniformly by `draw`, a float32 scalar; returns its tensor."""
    return tf.switch_case(tf.cast(draw * len(ways), tf.int32), ways)
