"""Mean and variance over all clones, for batch norms that are composed of single ops."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.rewrites.batch_norm.lookup import norm_of_gradient
from model_deploy.rewrites.batch_norm.parts import PartNorms, count_per_mean

_MOMENTS = "ModelDeployMoments"  # name of the gradient function below


def take_moments(part: PartNorms, x: Any, axes: Sequence[int], keep_dims: bool) -> tuple[Any, Any]:
    """Returns mean and variance of the whole batch, like `tf.nn.moments`.

    Args:
      part: the part of the clone, to which the norm is added.
      x: values of any shape, of a float dtype.
      axes: the axes to reduce.
      keep_dims: whether reduced axes stay, with size 1.

    Returns:
      Mean and variance, of the type of `x`.

    Raises:
      ValueError: as `PartNorms.whole_batch`.
    """
    with tf.name_scope("moments_of_all_clones") as scope:
        values = tf.cast(x, tf.float32) if x.dtype.size == 2 else x  # float16 has too few digits
        total = tf.reduce_sum(values, axes, keepdims=True)
        count = count_per_mean(values, total)
        local_mean = total / count
        squares = tf.reduce_sum(tf.math.squared_difference(values, local_mean), axes, keepdims=True)
        _, mean, variance = part.whole_batch(scope.rstrip("/"), count, local_mean, squares)
        with tf.get_default_graph().gradient_override_map({"IdentityN": _MOMENTS}):
            mean, variance, _ = tf.identity_n([mean, variance, values])
        if not keep_dims:
            mean, variance = (tf.squeeze(each, axes) for each in (mean, variance))
        return tf.cast(mean, x.dtype), tf.cast(variance, x.dtype)


@tf.RegisterGradient(_MOMENTS)
def _gradient_of_moments(op: Any, of_mean: Any, of_variance: Any, _: Any) -> list[Any]:
    """Gradient of the values x: (gradient of mean + 2 (x - mean) gradient of variance) / count.

    The gradients of mean and variance are summed over all clones first.
    """
    mean, _, x = op.inputs
    part, place, count = norm_of_gradient(mean)
    flat = [tf.reshape(each, [-1]) for each in (of_mean, of_variance)]
    sums = part.sum_for_gradient(place, tf.concat(flat, axis=0))
    of_mean, of_variance = (
        tf.reshape(each, tf.shape(mean)) for each in tf.split(sums * (1 / count), 2)
    )
    return [None, None, of_mean + 2 * (x - mean) * of_variance]
