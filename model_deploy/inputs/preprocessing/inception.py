"""The `inception` family: a random part, stretched, mirrored, in other colours; -1 to 1.

C. Szegedy et al.: "Going deeper with convolutions", 2014, section 6 (the random part);
A. Howard: "Some improvements on deep convolutional neural network based image
classification", 2013 (the colours).
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from model_deploy.inputs.preprocessing import families, images
from model_deploy.inputs.randomness import uniform_per_image

_CENTRAL_FRACTION = 0.875
_METHODS = ("bilinear", "nearest", "bicubic", "area")
_COLOUR_ORDERS = (
    ("brightness", "saturation", "hue", "contrast"),
    ("saturation", "brightness", "contrast", "hue"),
    ("contrast", "hue", "brightness", "saturation"),
    ("hue", "saturation", "contrast", "brightness"),
)
# name -> (operation, smallest and largest argument)
_COLOURS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "brightness": (tf.image.adjust_brightness, -32 / 255, 32 / 255),
    "saturation": (tf.image.adjust_saturation, 0.5, 1.5),
    "hue": (tf.image.adjust_hue, -0.2, 0.2),
    "contrast": (tf.image.adjust_contrast, 0.5, 1.5),
}
_NETWORKS = (
    *(f"inception_v{version}" for version in (1, 2, 3, 4)),
    *("inception_resnet_v2", "mobilenet_v1", "mobilenet_v2", "mobilenet_v2_035"),
    *("mobilenet_v2_140", "mobilenet_v3_small", "mobilenet_v3_large"),
    *("mobilenet_v3_small_minimalistic", "mobilenet_v3_large_minimalistic"),
    *("mobilenet_edgetpu", "mobilenet_edgetpu_075", "nasnet_mobile", "nasnet_large"),
    *("pnasnet_mobile", "pnasnet_large"),
)


def evaluate(
    image: Any, height: int, width: int, *, crop_image: bool = True, use_grayscale: bool = False
) -> Any:
    """[h, w, c] to float32 [height, width, c], from -1 to 1: the centre, stretched.

    Args:
      image: uint8, or float32 from 0 to 1.
      height: of the result.
      width: of the result.
      crop_image: whether to cut away an eighth of each side first.
      use_grayscale: turns colours into one grey channel first.
    """
    image = tf.image.convert_image_dtype(image, tf.float32)
    if use_grayscale:
        image = images.to_grey(image)
    if crop_image:
        sizes = tf.cast(tf.shape(image)[:2], tf.float32)
        start = tf.cast((sizes - sizes * _CENTRAL_FRACTION) / 2, tf.int32)
        begin = tf.concat([start, [0]], axis=0)
        image = tf.slice(image, begin, tf.shape(image) - 2 * begin)
    return (_resize(image, height, width, "bilinear") - 0.5) * 2


def crop_encoded(contents: Any, seed: Any, channels: int) -> Any:
    """The random part of an encoded image; of a JPEG, nothing else is decoded.

    Args:
      contents: string [], JPEG or PNG.
      seed: int64 [2].
      channels: 1 or 3, or 0 for as many as the image has.

    Returns:
      uint8 [h, w, channels]: what `train` would cut out of the decoded image.
    """

    def crop_jpeg() -> Any:
        begin, size = _random_part(tf.io.extract_jpeg_shape(contents), seed)
        window = tf.concat([begin[:2], size[:2]], axis=0)
        return tf.io.decode_and_crop_jpeg(contents, window, channels)

    def crop_other() -> Any:
        image = tf.io.decode_image(contents, channels, expand_animations=False)
        return tf.slice(image, *_random_part(tf.shape(image), seed))

    return tf.cond(tf.io.is_jpeg(contents), crop_jpeg, crop_other)


@families.register_preprocessing(
    "inception", evaluate, networks=_NETWORKS, crop_encoded=crop_encoded
)
def train(
    image: Any,
    height: int,
    width: int,
    seed: Any,
    *,
    fast_mode: bool = True,
    crop_image: bool = True,
    use_grayscale: bool = False,
) -> Any:
    """A random part, stretched, mirrored half of the time, in other colours.

    Args:
      image: uint8 [h, w, c], or float32 from 0 to 1.
      height: of the result.
      width: of the result.
      seed: int64 [2].
      fast_mode: bilinear scaling, brightness and saturation only; otherwise one of four
        ways to scale and one of four orders of brightness, saturation, hue, contrast.
      crop_image: whether to cut out a random part.
      use_grayscale: turns colours into one grey channel at the end.

    Returns:
      float32 [height, width, c], from -1 to 1.
    """
    if crop_image:
        channels = image.shape.as_list()[-1]
        begin, size = _random_part(tf.shape(image), seed)
        image = tf.slice(image, begin, size)
        image.set_shape([None, None, channels])
    image = tf.image.convert_image_dtype(image, tf.float32)
    draws = uniform_per_image(seed[tf.newaxis], 7)[0]
    if fast_mode:
        image = _resize(image, height, width, "bilinear")
    else:
        ways = [functools.partial(_resize, image, height, width, method) for method in _METHODS]
        image = _choose(draws[0], ways)
    resized = image
    image = tf.cond(draws[1] < 0.5, lambda: resized, lambda: resized[:, ::-1])
    image = tf.clip_by_value(_distort_colours(image, draws[2:], fast_mode), 0.0, 1.0)
    if use_grayscale:
        image = images.to_grey(image)
    return (image - 0.5) * 2


def _random_part(shape: Any, seed: Any) -> tuple[Any, Any]:
    """Begin and size, int32 [3] each, of 5-100% of an image of about its proportions."""
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


def _resize(image: Any, height: int, width: int, method: str) -> Any:
    # The operations of TensorFlow 1, which sample at the corners of pixels.
    channels = image.shape.as_list()[-1]
    image = tf.compat.v1.image.resize(image[tf.newaxis], [height, width], method)[0]
    return tf.ensure_shape(image, [height, width, channels])


def _distort_colours(image: Any, draws: Any, fast_mode: bool) -> Any:
    if image.shape.as_list()[-1] != 3:  # grey images have neither saturation nor hue
        return _in_order(image, draws, ("brightness",) if fast_mode else ("brightness", "contrast"))
    if fast_mode:
        return _in_order(image, draws, ("brightness", "saturation"))
    ways = [functools.partial(_in_order, image, draws, order) for order in _COLOUR_ORDERS]
    return _choose(draws[4], ways)


def _in_order(image: Any, draws: Any, order: tuple[str, ...]) -> Any:
    places = {name: place for place, name in enumerate(_COLOURS)}
    for name in order:
        change, smallest, largest = _COLOURS[name]
        image = change(image, smallest + draws[places[name]] * (largest - smallest))
    return image


def _choose(draw: Any, ways: Sequence[Callable[[], Any]]) -> Any:
    """The result of one of the ways, each as likely as the others."""
    return tf.switch_case(tf.cast(draw * len(ways), tf.int32), ways)
