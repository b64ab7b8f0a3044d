"""Mixup and cutmix: each example with a part of another one, and labels that say so.

H. Zhang, M. Cisse, Y. Dauphin, D. Lopez-Paz: "mixup", 2017, https://arxiv.org/abs/1710.09412;
S. Yun et al.: "CutMix", 2019, https://arxiv.org/abs/1905.04899.

The partner of an example is the one at the next place of the same global batch, that of the last
one the first.  The order is a random one, so the next example is any other; and a piece of a global
batch, with the single example that follows it, has all of its own partners.  So how a global batch
is cut changes nothing, and costs no more than one example for each piece.
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
    """How the examples of a piece of a global batch are mixed.

    Attributes:
      mixup: both parameters of the Beta distribution of the shares; 0 is no mixup.
      cutmix: both parameters of the Beta distribution of the areas; 0 is no cutmix.
      num_classes: length of the labels' distributions.
      count: examples of the piece, without the one that follows it.
    """

    mixup: float
    cutmix: float
    num_classes: int
    count: int

    def mix(self, examples: dict[str, Any]) -> dict[str, Any]:
        """Mixes each example with the next one.

        Args:
          examples: "image" float32 [m, h, w, c], "label" int64 [m], "seed" int64 [m, 2], and
            others [m, ...] that stay as they are.  m is `count`, where the first example follows
            the last one, or 1 more.

        Returns:
          All but "seed", with `count` in place of m; "label" is float32 [count, num_classes], the
          shares of the classes.
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
        """The values of the examples and those of their partners."""
        return values[: self.count], tf.roll(values, -1, axis=0)[: self.count]

    def _weights(self, seeds: Any, shape: Any) -> tuple[Any, Any]:
        """How much of each value is the example's own.

        Returns:
          float32 [count, h * w * c], or [count, 1] where it is the same for all of an image; and
          its mean over each image, float32 [count].
        """
        draws = uniform_per_image(salted(seeds, _SALT), 4)
        mixed_up = draws[:, 3] < (0.5 if self.mixup and self.cutmix else float(self.mixup > 0))
        # A parameter of 0 is that of none of the examples.
        alphas = [float(each) or 1.0 for each in (self.mixup, self.cutmix)]
        drawn = beta(draws[:, 0], tf.where(mixed_up, *alphas))
        if not self.cutmix:
            return drawn[:, tf.newaxis], drawn
        begin, end = cut_boxes(drawn, draws[:, 1:3], shape[1], shape[2])
        weights = tf.reshape(1.0 - boxes.inside(begin, end, shape), [self.count, -1])
        # In float64, so that the float32 is the nearest one however the division is made.
        cut = tf.cast(tf.reduce_prod(end - begin, axis=1), tf.float64)
        shares = tf.cast(1.0 - cut / tf.cast(shape[1] * shape[2], tf.float64), tf.float32)
        if not self.mixup:
            return weights, shares
        weights = tf.where(mixed_up[:, tf.newaxis], drawn[:, tf.newaxis], weights)
        return weights, tf.where(mixed_up, drawn, shares)


def cut_boxes(shares: Any, draws: Any, height: Any, width: Any) -> tuple[Any, Any]:
    """The boxes of cutmix, each 1 - share of its image, cut off at the edges of the image.

    Args:
      shares: float32 [n], what is to be left of each image.
      draws: float32 [n, 2], from 0 to 1: the middle of the box, down and across.
      height: of the images, int32 [].
      width: of the images, int32 [].

    Returns:
      Where the boxes begin and end, int32 [n, 2] each: down and across.
    """
    sides = tf.stack([height, width])
    lengths = tf.cast(sides, tf.float32)
    half = tf.cast(tf.sqrt(1.0 - shares)[:, tf.newaxis] * lengths, tf.int32) // 2
    middle = tf.cast(draws * lengths, tf.int32)
    return tf.maximum(middle - half, 0), tf.minimum(middle + half, sides)


def beta(draws: Any, alpha: Any) -> Any:
    """Numbers with the distributions Beta(alpha, alpha).

    The quantile of a uniform number, found by bisection.  A ratio of gamma variables, the usual
    way, is 0 / 0 now and then for a small alpha, and needs an op for each seed.

    Args:
      draws: float32 [n], uniform from 0 to 1.
      alpha: above 0, float32 [n].

    Returns:
      float32 [n], from 0 to 1, to 2**-25.
    """
    draws = tf.cast(draws, tf.float64) + 2.0**-25  # the middle of what each float32 stands for
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
