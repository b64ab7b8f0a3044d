"""Mixup and cutmix: combines each example, and its label, with another example.

H. Zhang, M. Cisse, Y. Dauphin, D. Lopez-Paz: "mixup", 2017, https://arxiv.org/abs/1710.09412;
S. Yun et al.: "CutMix", 2019, https://arxiv.org/abs/1905.04899.

The partner of an example is the next example in the same global batch; that of the last is the
first.  As the order is random, so is the partner.  A piece of a global batch needs just the one
example that follows it, so the cutting of a global batch into pieces does not change the result.
"""

import dataclasses
from typing import Any

import tensorflow as tf

from model_deploy.inputs.augmentation import boxes
from model_deploy.inputs.order.randomness import salted, uniform_per_image

_SALT = 0x4D495845
_BISECTIONS = 24  # as many bits as a float32 has


@dataclasses.dataclass(frozen=True)
class Mixing:
    """The settings for mixing the examples of a piece of a global batch.

    Attributes:
      mixup: both parameters of the Beta distribution of the weights; 0 is no mixup.
      cutmix: both parameters of the Beta distribution of the areas; 0 is no cutmix.
      num_classes: length of the labels' distributions.
      count: number of examples in the piece, without the one that follows it.
    """

    mixup: float
    cutmix: float
    num_classes: int
    count: int

    def mix(self, examples: dict[str, Any]) -> dict[str, Any]:
        """Mixes each example with the next one.

        Args:
          examples: "image" float32 [m, h, w, c], "label" int64 [m], "seed" int64 [m, 2], and
            others [m, ...] that are not changed.  m is `count` + 1; or `count` for a whole global
            batch, in which the first example follows the last.

        Returns:
          The first `count` examples, without "seed"; "label" has class probabilities, float32
          [count, num_classes].
        """
        seeds = examples["seed"][: self.count]
        others = {name: value[: self.count] for name, value in examples.items() if name != "seed"}
        images, following = self._pairs(examples["image"])
        weights, shares = self._weights(seeds, tf.shape(images))
        flat = [tf.reshape(each, [self.count, -1]) for each in (images, following)]
        mixed = tf.reshape(weights * flat[0] + (1.0 - weights) * flat[1], tf.shape(images))
        mixed = tf.ensure_shape(mixed, images.shape)
        labels, others_labels = self._pairs(tf.one_hot(examples["label"], self.num_classes))
        shares = shares[:, tf.newaxis]
        label = shares * labels + (1.0 - shares) * others_labels
        return others | {"image": mixed, "label": label}

    def _pairs(self, values: Any) -> tuple[Any, Any]:
        """Returns the values of the examples, and those of their partners."""
        return values[: self.count], tf.roll(values, -1, axis=0)[: self.count]

    def _weights(self, seeds: Any, shape: Any) -> tuple[Any, Any]:
        """Returns the weight of the example itself in each value.

        Returns:
          float32 [count, h * w * c], or [count, 1] if constant within images; and its mean over
          each image, float32 [count].
        """
        draws = uniform_per_image(salted(seeds, _SALT), 4)
        mixed_up = draws[:, 3] < (0.5 if self.mixup and self.cutmix else float(self.mixup > 0))
        # A parameter of 0 is used by no example; 1 avoids NaN.
        alphas = [float(each) or 1.0 for each in (self.mixup, self.cutmix)]
        drawn = beta(draws[:, 0], tf.where(mixed_up, *alphas))
        if not self.cutmix:
            return drawn[:, tf.newaxis], drawn
        begin, end = cut_boxes(drawn, draws[:, 1:3], shape[1], shape[2])
        weights = tf.reshape(1.0 - boxes.inside(begin, end, shape), [self.count, -1])
        # In float64, so that devices that divide differently round to the same float32.
        cut = tf.cast(tf.reduce_prod(end - begin, axis=1), tf.float64)
        shares = tf.cast(1.0 - cut / tf.cast(shape[1] * shape[2], tf.float64), tf.float32)
        if not self.mixup:
            return weights, shares
        weights = tf.where(mixed_up[:, tf.newaxis], drawn[:, tf.newaxis], weights)
        return weights, tf.where(mixed_up, drawn, shares)


def cut_boxes(shares: Any, draws: Any, height: Any, width: Any) -> tuple[Any, Any]:
    """Returns the boxes of cutmix, of area 1 - share before they are cut off at the edges.

    Args:
      shares: fraction of each image to keep, float32 [n].
      draws: random numbers, float32 [n, 2], from 0 to 1: middle of the box, down and across.
      height: height of the images, int32 [].
      width: width of the images, int32 [].

    Returns:
      Begin and end of the boxes (down, across), int32 [n, 2] each.
    """
    sides = tf.stack([height, width])
    lengths = tf.cast(sides, tf.float32)
    half = tf.cast(tf.sqrt(1.0 - shares)[:, tf.newaxis] * lengths, tf.int32) // 2
    middle = tf.cast(draws * lengths, tf.int32)
    return tf.maximum(middle - half, 0), tf.minimum(middle + half, sides)


def beta(draws: Any, alpha: Any) -> Any:
    """Transforms uniform numbers to the distributions Beta(alpha, alpha).

    Finds quantiles by bisection.  The usual way, a ratio of gamma variables, is sometimes 0 / 0 for
    a small alpha, and needs a separate op for each seed.

    Args:
      draws: float32 [n], uniform from 0 to 1.
      alpha: above 0, float32 [n].

    Returns:
      float32 [n], from 0 to 1, with an error of 2**-25 at most.
    """
    draws = tf.cast(draws, tf.float64) + 2.0**-25  # the middle of each float32's interval
    tail = tf.minimum(draws, 1.0 - draws)  # the distribution is symmetric
    alpha = tf.cast(alpha, tf.float64)

    def halve(step: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
        middle = (low + high) / 2
        is_below = tf.math.betainc(alpha, alpha, middle) < tail
        return step + 1, tf.where(is_below, middle, low), tf.where(is_below, high, middle)

    first = (tf.constant(0), tf.zeros_like(tail), tf.zeros_like(tail) + 0.5)
    _, low, high = tf.while_loop(lambda step, *_: step < _BISECTIONS, halve, first)
    quantile = (low + high) / 2
    return tf.cast(tf.where(draws < 0.5, quantile, 1.0 - quantile), tf.float32)
