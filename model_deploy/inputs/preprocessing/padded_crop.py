"""The `padded_crop` family: shift and mirror, then standardized; no change of colours.

For residual networks on CIFAR-10, as in K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning
for image recognition", 2015, section 4.2, https://arxiv.org/abs/1512.03385.  The paper subtracts
the dataset's mean image and pads with zeros, the mean.  Here each image is standardized by itself,
which needs no dataset, but a black border would change mean and contrast.  So the padding is the
image mirrored at its edge, as in D. Page, "How to train your ResNet" (2018),
https://myrtle.ai/learn/how-to-train-your-resnet/.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model_deploy.inputs.order.randomness import uniform_per_image
from model_deploy.inputs.preprocessing import cifarnet, families, images


def train(
    batch: Any,
    height: int,
    width: int,
    seeds: Any,
    *,
    crop_image: bool = True,
    use_grayscale: bool = False,
    extra_augment: Callable[[Any], Any] | None = None,
    padding: int = cifarnet.PADDING,
) -> Any:
    """Shifts by up to `padding` pixels and mirrors, then standardizes.

    Args:
      batch: uint8 [n, h, w, c].
      height: height of the result, at most that of the padded images.
      width: width of the result, at most that of the padded images.
      seeds: int64 [n, 2].
      crop_image: whether to shift and mirror, which `FAMILY.crop` may have done.
      use_grayscale: whether to convert colours to one grey channel.
      extra_augment: applied to the images before they are normalized; see `Preprocessing`.
      padding: number of mirrored pixels on each side of an image; 4 in the paper.

    Returns:
      float32 [n, height, width, c].

    Raises:
      ValueError: if the size to cut is larger than the padded images, or the padding is not
        smaller than an image.
    """
    if crop_image:
        draws = uniform_per_image(seeds, cifarnet.CROP_DRAWS)
        batch = cifarnet.shift_and_mirror(batch, height, width, draws, padding, reflect=True)
    batch = tf.cast(batch if extra_augment is None else extra_augment(batch), tf.float32)
    return tf.image.per_image_standardization(images.to_grey(batch) if use_grayscale else batch)


FAMILY = families.Preprocessing(
    "padded_crop",
    train,
    cifarnet.evaluate,
    batched=True,
    takes_extra_augment=True,
    takes_padding=True,
    crop=functools.partial(cifarnet.crop, reflect=True),
    num_draws=cifarnet.CROP_DRAWS,
)
