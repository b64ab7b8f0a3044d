"""`vgg_preprocessing`: scaled by the smaller side, cut, mirrored, minus the mean colour."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.inputs import preprocessing
from model_deploy.tf1.preprocessing.arguments import as_image, as_size

_RESIZE_SIDE_MIN = 256
_RESIZE_SIDE_MAX = 512


def preprocess_for_train(  # noqa: PLR0917 - the arguments are TF-Slim's
    image: Any,
    output_height: int,
    output_width: int,
    resize_side_min: int = _RESIZE_SIDE_MIN,
    resize_side_max: int = _RESIZE_SIDE_MAX,
    use_grayscale: bool = False,
) -> Any:
    """A random part of the randomly scaled image, mirrored half of the time.

    Args:
      image: uint8 or float [h, w, 3], 0 to 255.
      output_height: of the part to cut.
      output_width: of the part to cut.
      resize_side_min: the smallest smaller side of the scaled image.
      resize_side_max: the largest one.
      use_grayscale: not possible.

    Returns:
      float32 [output_height, output_width, 3].

    Raises:
      ValueError: for grey images, a range of sides that is empty, a part that is larger than the
        smallest scaled image, and an image that is not of three dimensions.
    """
    return preprocessing.vgg.augment(
        as_image(image, 3),
        as_size(output_height),
        as_size(output_width),
        tf.random_uniform([4]),
        resize_side_min=resize_side_min,
        resize_side_max=resize_side_max,
        use_grayscale=use_grayscale,
    )


def preprocess_for_eval(
    image: Any,
    output_height: int,
    output_width: int,
    resize_side: int,
    use_grayscale: bool = False,
) -> Any:
    """The centre of the scaled image.

    Args:
      image: uint8 or float [h, w, 3], 0 to 255.
      output_height: of the part to cut.
      output_width: of the part to cut.
      resize_side: the smaller side of the scaled image.
      use_grayscale: not possible.

    Returns:
      float32 [output_height, output_width, 3].

    Raises:
      ValueError: for grey images, a part that is larger than the scaled image, and an image that
        is not of three dimensions.
    """
    return preprocessing.vgg.evaluate(
        as_image(image, 3),
        as_size(output_height),
        as_size(output_width),
        resize_side_min=resize_side,
        use_grayscale=use_grayscale,
    )


def preprocess_image(  # noqa: PLR0917 - as above
    image: Any,
    output_height: int,
    output_width: int,
    is_training: bool = False,
    resize_side_min: int = _RESIZE_SIDE_MIN,
    resize_side_max: int = _RESIZE_SIDE_MAX,
    use_grayscale: bool = False,
) -> Any:
    """`preprocess_for_train`, or `preprocess_for_eval` with `resize_side_min`.

    Args:
      image: uint8 or float [h, w, 3], 0 to 255.
      output_height: of the part to cut.
      output_width: of the part to cut.
      is_training: which of the two.
      resize_side_min: the smallest smaller side, or in evaluation the smaller side.
      resize_side_max: the largest smaller side; not used in evaluation.
      use_grayscale: not possible.

    Returns:
      float32 [output_height, output_width, 3].

    Raises:
      ValueError: as these.
    """
    if is_training:
        return preprocess_for_train(
            image, output_height, output_width, resize_side_min, resize_side_max, use_grayscale
        )
    return preprocess_for_eval(image, output_height, output_width, resize_side_min, use_grayscale)
