"""`tf.contrib.nn`: cross entropies with logits first, and small functions of a layer."""

# ruff: noqa: PLR0917 - the order of arguments is TensorFlow's
from typing import Any

import tensorflow.compat.v1 as tf

# Of the self-normalizing networks of Klambauer and others, https://arxiv.org/abs/1706.02515.
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Any:
    """`tf.nn.softmax_cross_entropy_with_logits` with the order of arguments of TensorFlow 0.x.

    Args:
      logits: float [..., classes].
      labels: probabilities, of the same shape and type; no gradient flows into them.
      dim: the dimension of the classes.
      name: of the op.

    Returns:
      The cross entropies, of the shape of the logits without `dim`.
    """
    return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Any:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` with the order of arguments of 0.x.

    Args:
      logits: float [..., classes].
      labels: int32 or int64 [...].
      name: of the op.

    Returns:
      The cross entropies, of the shape of the labels.
    """
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(
    logits: Any, targets: Any, name: str | None = None
) -> Any:
    """`tf.nn.sigmoid_cross_entropy_with_logits` with the order of arguments of 0.x.

    Args:
      logits: float, of any shape.
      targets: probabilities, of the same shape and type.
      name: of the op.

    Returns:
      The cross entropies, of the same shape.
    """
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def alpha_dropout(
    x: Any,
    keep_prob: Any,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Dropout that keeps mean 0 and variance 1 (https://arxiv.org/abs/1706.02515, section 3).

    Args:
      x: float, of any shape.
      keep_prob: the probability that an element stays, over 0 and up to 1.
      noise_shape: shape of the random choice, which is broadcast; by default that of `x`.
      seed: of the choice.
      name: of the ops.

    Returns:
      A tensor of the shape of `x`.

    Raises:
      ValueError: if `keep_prob` is out of its range.
    """
    if isinstance(keep_prob, float | int) and not 0 < keep_prob <= 1:
        raise ValueError(f"keep_prob must be over 0 and at most 1, got {keep_prob}")
    with tf.name_scope(name, "alpha_dropout", [x]):
        x = tf.convert_to_tensor(x)
        if isinstance(keep_prob, float | int) and keep_prob == 1:
            return x
        keep_prob = tf.convert_to_tensor(keep_prob, x.dtype)
        dropped = -_SELU_ALPHA * _SELU_SCALE
        shape = tf.shape(x) if noise_shape is None else noise_shape
        kept = tf.cast(tf.random_uniform(shape, seed=seed, dtype=x.dtype) < keep_prob, x.dtype)
        scale = tf.rsqrt(keep_prob + keep_prob * (1 - keep_prob) * dropped**2)
        result = scale * (x * kept + dropped * (1 - kept) - dropped * (1 - keep_prob))
        return tf.ensure_shape(result, x.shape)


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: str | None = None) -> Any:
    """`alpha * softplus(x / alpha)`, at most `clip` where this is given.

    Args:
      x: float, of any shape.
      alpha: over 0, of a shape that is broadcast to that of `x`.
      clip: the greatest value, or None.
      name: of the ops.
    """
    with tf.name_scope(name, "scaled_softplus", [x, alpha]):
        y = alpha * tf.nn.softplus(x / alpha)
        return y if clip is None else tf.minimum(y, clip)


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Any:  # noqa: A002 - TensorFlow's argument
    """The n-th smallest value of the last dimension, from 0; with `reverse`, the n-th largest.

    Args:
      input: numbers [..., k].
      n: an integer from 0 to k - 1.
      reverse: whether to count from the largest.
      name: of the op.

    Returns:
      Numbers [...].
    """
    return tf.raw_ops.NthElement(input=input, n=n, reverse=reverse, name=name)


def conv1d_transpose(
    value: Any,
    filter: Any,  # noqa: A002 - TensorFlow's argument
    output_shape: Any,
    stride: int,
    padding: str = "SAME",
    data_format: str = "NWC",
    name: str | None = None,
) -> Any:
    """`tf.nn.conv1d_transpose`, which has this place since TensorFlow 1.14.

    Args:
      value: float [batch, width, in], or with "NCW" [batch, in, width].
      filter: float [width of the filter, out, in].
      output_shape: that of the result.
      stride: how far entries of `value` are apart in the result.
      padding: "SAME" or "VALID".
      data_format: "NWC" or "NCW".
      name: of the op.
    """
    return tf.nn.conv1d_transpose(value, filter, output_shape, stride, padding, data_format, name)


def sampled_sparse_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    **kwargs: Any,
) -> Any:
    """`tf.nn.sampled_softmax_loss` of labels that are one class each.

    Args:
      weights: float [classes, dim], or a list of its parts.
      biases: float [classes].
      labels: integers [batch] or [batch, 1].
      inputs: float [batch, dim].
      num_sampled: how many classes are drawn for a batch.
      num_classes: how many there are.
      **kwargs: further ones of `tf.nn.sampled_softmax_loss`.

    Returns:
      The losses, float [batch].
    """
    labels = tf.reshape(labels, [-1, 1])
    return tf.nn.sampled_softmax_loss(
        weights, biases, labels, inputs, num_sampled, num_classes, **kwargs
    )
