"""`cifarnet_preprocessing`: shifted, mirrored, brighter or darker, then standardized."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.inputs import preprocessing
from model_deploy.tf1.preprocessing.arguments import as_image, as_size

_PADDING = preprocessing.cifarnet.PADDING


def preprocess_for_train(  # noqa: PLR0917 - the arguments are TF-Slim's
    image: Any,
    output_height: int,
    output_width: int,
    padding: int = _PADDING,
    add_image_summaries: bool = True,
    use_grayscale: bool = False,
) -> Any:
    """Shifts, mirrors half of the time, changes brightness and contrast; then standardizes.

    Args:
      image: uint8 or float [h, w, c], 0 to 255; 3 channels where the shape does not say it.
      output_height: at most h + 2 `padding`.
      output_width: at most w + 2 `padding`.
      padding: how many zeros are put on each side first.
      add_image_summaries: whether to add `image` and `distorted_image` to the summaries.
      use_grayscale: turns colours into one grey channel first.

    Returns:
      float32 [output_height, output_width, c].

    Raises:
      ValueError: if the part is larger than the padded image, or the image is not of three
        dimensions.
    """
    image = as_image(image, 3)
    if add_image_summaries:
        _summarize("image", image[tf.newaxis])
    height, width = as_size(output_height), as_size(output_width)
    draws = tf.random_uniform([1, 5])
    batch = image[tf.newaxis] if image.dtype == tf.uint8 else tf.cast(image, tf.float32)[tf.newaxis]
    part = preprocessing.cifarnet.shift_and_mirror(batch, height, width, draws[:, :3], padding)
    if add_image_summaries:
        _summarize("distorted_image", part)
    result = preprocessing.cifarnet.distort(part, draws[:, 3:], use_grayscale=use_grayscale)[0]
    channels = 1 if use_grayscale else image.shape.as_list()[-1]
    return tf.ensure_shape(result, [height, width, channels])


def preprocess_for_eval(
    image: Any,
    output_height: int,
    output_width: int,
    add_image_summaries: bool = True,
    use_grayscale: bool = False,
) -> Any:
    """Cuts or zero-pads around the centre, then standardizes.

    Args:
      image: uint8 or float [h, w, c], 0 to 255.
      output_height: the WIDTH of the result: TF-Slim swaps the two here, though not in training,
        which is seen only where they differ.
      output_width: the height of the result.
      add_image_summaries: whether to add `image` and `resized_image` to the summaries.
      use_grayscale: turns colours into one grey channel first.

    Returns:
      float32 [output_width, output_height, c].

    Raises:
      ValueError: if the image is not of three dimensions.
    """
    batch = as_image(image)[tf.newaxis]
    height, width = as_size(output_width), as_size(output_height)
    part = preprocessing.images.central_part(batch, height, width, use_grayscale=use_grayscale)
    if add_image_summaries:
        _summarize("image", batch)
        _summarize("resized_image", part)
    return tf.image.per_image_standardization(part)[0]


def preprocess_image(  # noqa: PLR0917 - as above
    image: Any,
    output_height: int,
    output_width: int,
    is_training: bool = False,
    add_image_summaries: bool = True,
    use_grayscale: bool = False,
) -> Any:
    """`preprocess_for_train` or `preprocess_for_eval`.

    Args:
      image: uint8 or float [h, w, c], 0 to 255.
      output_height: of the result; swapped with the width in evaluation.
      output_width: of the result.
      is_training: which of the two.
      add_image_summaries: whether to add images to the summaries.
      use_grayscale: turns colours into one grey channel first.

    Returns:
      float32 [output_height, output_width, c].

    Raises:
      ValueError: as these.
    """
    if is_training:
        return preprocess_for_train(
            image,
            output_height,
            output_width,
            add_image_summaries=add_image_summaries,
            use_grayscale=use_grayscale,
        )
    return preprocess_for_eval(
        image, output_height, output_width, add_image_summaries, use_grayscale
    )


def _summarize(name: str, batch: Any) -> None:
    tf.summary.image(name, tf.cast(batch, tf.float32))
