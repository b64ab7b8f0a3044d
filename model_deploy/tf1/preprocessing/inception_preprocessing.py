"""`inception_preprocessing`: a random part, stretched, mirrored, in other colours; -1 to 1."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.inputs import preprocessing
from model_deploy.tf1.preprocessing.arguments import as_image, as_size

_inception = preprocessing.inception
_WHOLE_IMAGE = [[[0.0, 0.0, 1.0, 1.0]]]


def apply_with_random_selector(x: Any, func: Callable[[Any, int], Any], num_cases: int) -> Any:
    """`func(x, case)` with one of the cases, each as likely as the others.

    Args:
      x: a tensor of any shape.
      func: makes a tensor of `x` and a number from 0 to `num_cases` - 1.
      num_cases: how many there are.
    """
    ways = [functools.partial(func, x, case) for case in range(num_cases)]
    return _inception.choose(tf.random_uniform([]), ways)


def distort_color(
    image: Any, color_ordering: int = 0, fast_mode: bool = True, scope: str | None = None
) -> Any:
    """Random brightness, saturation, hue and contrast; the last two not in `fast_mode`.

    Args:
      image: float32 [h, w, 3], 0 to 1.
      color_ordering: one of the orders to do it in, from 0 to 3; in `fast_mode` 0 for brightness
        first, others for saturation first.
      fast_mode: see above.
      scope: of the names of the ops.

    Returns:
      float32 [h, w, 3], 0 to 1.

    Raises:
      ValueError: for an unknown order.
    """
    order: tuple[str, ...] = ("brightness", "saturation")
    if fast_mode:
        order = order if color_ordering == 0 else order[::-1]
    elif color_ordering in range(len(_inception.COLOUR_ORDERS)):
        order = _inception.COLOUR_ORDERS[color_ordering]
    else:
        raise ValueError(f"color_ordering must be from 0 to 3, got {color_ordering!r}")
    with tf.name_scope(scope, "distort_color", [image]):
        return _inception.distort_in_order(image, tf.random_uniform([4]), order)


def distorted_bounding_box_crop(  # noqa: PLR0917 - the arguments are TF-Slim's
    image: Any,
    bbox: Any,
    min_object_covered: float = 0.1,
    aspect_ratio_range: Sequence[float] = (0.75, 1.33),
    area_range: Sequence[float] = (0.05, 1.0),
    max_attempts: int = 100,
    scope: str | None = None,
) -> tuple[Any, Any]:
    """Cuts out a random part that has enough of one of the boxes.

    Args:
      image: [h, w, c].
      bbox: float32 [1, boxes, 4], each (top, left, bottom, right) from 0 to 1; without boxes the
        whole image is one.
      min_object_covered: how much of a box, from 0 to 1, must be in the part.
      aspect_ratio_range: smallest and largest width divided by height.
      area_range: smallest and largest share of the image.
      max_attempts: after so many the whole image is taken.
      scope: of the names of the ops.

    Returns:
      The part, and its box, float32 [1, 1, 4].

    Raises:
      ValueError: if the image is not of three dimensions.
    """
    image = as_image(image)
    with tf.name_scope(scope, "distorted_bounding_box_crop", [image, bbox]):
        # By itself the op does not know the graph's seed.
        seed, seed2 = tf.get_seed(None)
        begin, size, distorted_bbox = tf.image.sample_distorted_bounding_box(
            tf.shape(image),
            bounding_boxes=bbox,
            seed=seed,
            seed2=seed2,
            min_object_covered=min_object_covered,
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            max_attempts=max_attempts,
            use_image_if_no_bounding_boxes=True,
        )
        part = tf.slice(image, begin, size)
        part.set_shape([None, None, image.shape.as_list()[-1]])
        return part, distorted_bbox


def preprocess_for_train(  # noqa: PLR0917 - as above
    image: Any,
    height: int,
    width: int,
    bbox: Any,
    fast_mode: bool = True,
    scope: str | None = None,
    add_image_summaries: bool = True,
    random_crop: bool = True,
    use_grayscale: bool = False,
) -> Any:
    """A random part, stretched, mirrored half of the time, in other colours.

    Args:
      image: integers, or float32 from 0 to 1, [h, w, c]; 3 channels where the shape does not say
        it.
      height: of the result.
      width: of the result.
      bbox: float32 [1, boxes, 4], see `distorted_bounding_box_crop`; None for the whole image.
      fast_mode: bilinear scaling, brightness and saturation only; otherwise one of four ways to
        scale and one of four orders of brightness, saturation, hue, contrast.
      scope: of the names of the ops.
      add_image_summaries: whether to add the steps to the summaries.
      random_crop: whether to cut out a random part.
      use_grayscale: turns colours into one grey channel at the end.

    Returns:
      float32 [height, width, c], from -1 to 1.

    Raises:
      ValueError: if the image is not of three dimensions.
    """

    def summarize(name: str, image: Any) -> None:
        if add_image_summaries:
            tf.summary.image(name, image[tf.newaxis])

    def summarize_boxes(name: str, boxes: Any) -> None:
        if add_image_summaries:
            tf.summary.image(name, tf.image.draw_bounding_boxes(image[tf.newaxis], boxes))

    with tf.name_scope(scope, "distort_image", [image, height, width, bbox]):
        bbox = tf.constant(_WHOLE_IMAGE) if bbox is None else bbox
        image = tf.image.convert_image_dtype(as_image(image, 3), tf.float32)
        draws = tf.random_uniform([7])
        summarize_boxes("image_with_bounding_boxes", bbox)
        part = image
        if random_crop:
            part, part_box = distorted_bounding_box_crop(image, bbox)
            summarize_boxes("images_with_distorted_bounding_box", part_box)
        part = _inception.stretch(part, as_size(height), as_size(width), draws[0], fast_mode)
        summarize("cropped_resized_image" if random_crop else "resized_image", part)
        part = preprocessing.images.mirror(part, draws[1])
        part = _inception.distort_colours(part, draws[2:], fast_mode)
        summarize("final_distorted_image", part)
        if use_grayscale:
            part = preprocessing.images.to_grey(part)
        return _inception.centred(part)


def preprocess_for_eval(  # noqa: PLR0917 - as above
    image: Any,
    height: int | None,
    width: int | None,
    central_fraction: float | None = _inception.CENTRAL_FRACTION,
    scope: str | None = None,
    central_crop: bool = True,
    use_grayscale: bool = False,
) -> Any:
    """The centre, stretched.

    Args:
      image: integers, or float32 from 0 to 1, [h, w, c].
      height: of the result; None keeps the size, as does a width of None.
      width: of the result.
      central_fraction: how much of each side is left; None for all of it.
      scope: of the names of the ops.
      central_crop: whether to cut the edges away at all.
      use_grayscale: turns colours into one grey channel first.

    Returns:
      float32 [height, width, c], from -1 to 1.

    Raises:
      ValueError: if `central_fraction` is not above 0 and at most 1, or the image is not of three
        dimensions.
    """
    if central_fraction and not 0 < central_fraction <= 1:
        raise ValueError(
            f"central_fraction must be above 0 and at most 1, got {central_fraction!r}"
        )
    with tf.name_scope(scope, "eval_image", [image, height, width]):
        return _inception.evaluate(
            as_image(image),
            None if height is None else as_size(height),
            None if width is None else as_size(width),
            crop_image=bool(central_crop and central_fraction),
            central_fraction=central_fraction or 1.0,
            use_grayscale=use_grayscale,
        )


def preprocess_image(  # noqa: PLR0917 - as above
    image: Any,
    height: int,
    width: int,
    is_training: bool = False,
    bbox: Any = None,
    fast_mode: bool = True,
    add_image_summaries: bool = True,
    crop_image: bool = True,
    use_grayscale: bool = False,
) -> Any:
    """`preprocess_for_train` or `preprocess_for_eval`.

    Args:
      image: integers, or float32 from 0 to 1, [h, w, c].
      height: of the result.
      width: of the result.
      is_training: which of the two.
      bbox: in training, float32 [1, boxes, 4]; None for the whole image.
      fast_mode: in training, see there.
      add_image_summaries: in training, whether to add the steps to the summaries.
      crop_image: whether to cut out a random part, or in evaluation the centre.
      use_grayscale: turns colours into one grey channel.

    Returns:
      float32 [height, width, c], from -1 to 1.

    Raises:
      ValueError: as these.
    """
    if is_training:
        return preprocess_for_train(
            image,
            height,
            width,
            bbox,
            fast_mode,
            add_image_summaries=add_image_summaries,
            random_crop=crop_image,
            use_grayscale=use_grayscale,
        )
    return preprocess_for_eval(
        image, height, width, central_crop=crop_image, use_grayscale=use_grayscale
    )
