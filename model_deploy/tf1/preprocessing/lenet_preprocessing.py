"""`lenet_preprocessing`: around the centre, values from -1 to 1, nothing random."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.inputs import preprocessing
from model_deploy.tf1.preprocessing.arguments import as_image, as_size


def preprocess_image(
    image: Any,
    output_height: int,
    output_width: int,
    is_training: bool,
    use_grayscale: bool = False,
) -> Any:
    """Cuts or zero-pads around the centre; (value - 128) / 128.

    Args:
      image: uint8 or float [h, w, c], 0 to 255.
      output_height: the WIDTH of the result: TF-Slim swaps the two here, which is seen only
        where they differ.
      output_width: the height of the result.
      is_training: not used.
      use_grayscale: turns colours into one grey channel first.

    Returns:
      float32 [output_width, output_height, c].

    Raises:
      ValueError: if the image is not of three dimensions.
    """
    del is_training
    batch = as_image(image)[tf.newaxis]
    height, width = as_size(output_width), as_size(output_height)
    return preprocessing.lenet.evaluate(batch, height, width, use_grayscale=use_grayscale)[0]
