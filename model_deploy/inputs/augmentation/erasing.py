"""Random erasing: sets a random box of the image to the mean.

Z. Zhong, L. Zheng, G. Kang, S. Li, Y. Yang: "Random erasing data augmentation", 2017,
https://arxiv.org/abs/1708.04896.  The largest box is a third of the image, as in today's recipes;
in the paper it is 0.4.
"""

import math
from typing import Any

import tensorflow as tf

from model_deploy.inputs.augmentation import boxes
from model_deploy.inputs.order.randomness import salted, uniform_per_image

AREAS = (0.02, 0.33)
ASPECTS = (0.3, 1 / 0.3)
_SALT = 0x45524153


def erase(images: Any, seeds: Any, probability: float) -> Any:
    """Sets a random box of some images to 0.

    The box's fraction of the area is uniform from 0.02 to 0.33, its aspect ratio (height / width)
    log-uniform from 0.3 to 1/0.3 as far as the box fits; both before rounding to pixels.

    Args:
      images: float32 [n, h, w, c], with mean 0.
      seeds: int64 [n, 2].
      probability: probability that an image gets a box.

    Returns:
      float32 [n, h, w, c].
    """
    draws = uniform_per_image(salted(seeds, _SALT), 5)
    shape = tf.shape(images)
    begin, end = random_boxes(draws[:, 1:], shape[1], shape[2])
    # A box with end = begin is empty.
    end = tf.where(draws[:, :1] < probability, end, begin)
    return images * (1.0 - boxes.inside(begin, end, shape))


def random_boxes(draws: Any, height: Any, width: Any) -> tuple[Any, Any]:
    """Returns begin and end (down, across) of random boxes, int32 [n, 2] each.

    Args:
      draws: random numbers, float32 [n, 4], from 0 to 1: area, aspect, position down and across.
      height: height of the images, int32 [].
      width: width of the images, int32 [].
    """
    sides = tf.stack([height, width])
    lengths = tf.cast(sides, tf.float32)
    area = (AREAS[0] + draws[:, 0] * (AREAS[1] - AREAS[0])) * lengths[0] * lengths[1]
    # The range of aspects with which a box of this area fits into the image.
    least = tf.maximum(tf.math.log(area / lengths[1] ** 2), math.log(ASPECTS[0]))
    most = tf.minimum(tf.math.log(lengths[0] ** 2 / area), math.log(ASPECTS[1]))
    aspect = tf.exp(least + draws[:, 1] * (most - least))
    wanted = tf.stack([tf.sqrt(area * aspect), tf.sqrt(area / aspect)], axis=1)
    size = tf.clip_by_value(tf.cast(tf.round(wanted), tf.int32), 1, sides)
    begin = tf.cast(tf.floor(draws[:, 2:4] * tf.cast(sides - size + 1, tf.float32)), tf.int32)
    return begin, begin + size
