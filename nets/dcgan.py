"""DCGAN: a generator of images from noise, and the discriminator that it is trained against.

Unsupervised Representation Learning with Deep Convolutional Generative Adversarial Networks,
Radford, Metz and Chintala 2015, https://arxiv.org/abs/1511.06434, section 3 and figure 1.
"""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim


def discriminator(
    inputs: Any,
    depth: int = 64,
    is_training: bool = True,
    reuse: bool | None = None,
    scope: Any = "Discriminator",
    fused_batch_norm: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds the discriminator: convolutions of stride 2 until one position is left.

    Args:
      inputs: `[batch, size, size, channels]` float32; `size` is a power of 2.
      depth: channels of the first layer; each further layer has twice as many.
      is_training: whether batch normalization uses the batch.
      reuse: whether the variables exist already.
      scope: variable scope.
      fused_batch_norm: whether batch normalization is TensorFlow's fused operation.

    Returns:
      Logits `[batch, 1]`, above 0 for images taken to be real, and the end points `conv1`, `conv2`
      and so on, `log2(size)` of them, and `logits`.

    Raises:
      ValueError: if `inputs` has another rank, an unknown or unequal height and width, or a size
        that is no power of 2.
    """
    num_layers = _power_of_2("inputs", _side(inputs))
    end_points: dict[str, Any] = {}
    net = inputs
    with (
        tf.variable_scope(scope, values=[inputs], reuse=reuse),
        _batch_norm_scope(is_training, fused_batch_norm),
        slim.arg_scope([slim.conv2d], stride=2, kernel_size=4, activation_fn=tf.nn.leaky_relu),
    ):
        for i in range(num_layers):
            name = f"conv{i + 1}"
            # Without it on the first layer: section 3 of the paper.
            norm = slim.batch_norm if i else None
            net = slim.conv2d(net, depth * 2**i, normalizer_fn=norm, scope=name)
            end_points[name] = net
        logits = slim.conv2d(
            net, 1, kernel_size=1, stride=1, padding="VALID", normalizer_fn=None, activation_fn=None
        )
        end_points["logits"] = tf.reshape(logits, [-1, 1])
    return end_points["logits"], end_points


def generator(
    inputs: Any,
    depth: int = 64,
    final_size: int = 32,
    num_outputs: int = 3,
    is_training: bool = True,
    reuse: bool | None = None,
    scope: Any = "Generator",
    fused_batch_norm: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds the generator: transposed convolutions, each of which doubles height and width.

    Args:
      inputs: noise `[batch, noise_size]` float32.
      depth: channels of the last transposed convolution; each one before has twice as many.
      final_size: height and width of the images, a power of 2 of at least 8.
      num_outputs: channels of the images.
      is_training: whether batch normalization uses the batch.
      reuse: whether the variables exist already.
      scope: variable scope.
      fused_batch_norm: whether batch normalization is TensorFlow's fused operation.

    Returns:
      Logits `[batch, final_size, final_size, num_outputs]`, of which `tanh` makes pixels, and the
      end points `deconv1` and so on, `log2(final_size) - 1` of them, and `logits`.

    Raises:
      ValueError: if `inputs` has another rank, or `final_size` is no power of 2 or is below 8.
    """
    if inputs.shape.rank != 2:
        raise ValueError(f"inputs must have rank 2 [batch, noise_size], got shape {inputs.shape}")
    num_layers = _power_of_2("final_size", final_size) - 1
    if final_size < 8:
        raise ValueError(f"final_size must be at least 8, got {final_size}")
    end_points: dict[str, Any] = {}
    with (
        tf.variable_scope(scope, values=[inputs], reuse=reuse),
        _batch_norm_scope(is_training, fused_batch_norm),
        slim.arg_scope(
            [slim.conv2d_transpose], normalizer_fn=slim.batch_norm, stride=2, kernel_size=4
        ),
    ):
        net = tf.expand_dims(tf.expand_dims(inputs, 1), 1)
        for i in range(1, num_layers + 1):
            name = f"deconv{i}"
            keywords: dict[str, Any] = {}
            if i == 1:  # of one position it makes 4 x 4
                keywords = {"stride": 1, "padding": "VALID"}
            elif i == num_layers:
                keywords = {"normalizer_fn": None, "activation_fn": None}
            channels = depth * 2 ** (num_layers - i)
            net = slim.conv2d_transpose(net, channels, scope=name, **keywords)
            end_points[name] = net
        end_points["logits"] = slim.conv2d(
            net,
            num_outputs,
            kernel_size=1,
            stride=1,
            padding="VALID",
            normalizer_fn=None,
            activation_fn=None,
            scope="logits",
        )
    return end_points["logits"], end_points


def _batch_norm_scope(is_training: bool, fused: bool) -> Any:
    return slim.arg_scope(
        [slim.batch_norm], is_training=is_training, zero_debias_moving_mean=True, fused=fused
    )


def _side(inputs: Any) -> int:
    """Height and width of images, which must be known and equal."""
    if inputs.shape.rank != 4:
        raise ValueError(f"inputs must have rank 4, got shape {inputs.shape}")
    height, width = inputs.shape.as_list()[1:3]
    if height is None or height != width:
        raise ValueError(
            f"inputs must have a known height that is equal to its width, got shape {inputs.shape}"
        )
    return int(height)


def _power_of_2(name: str, size: int) -> int:
    """The power of 2 that a size is."""
    if size < 1 or size & (size - 1):
        raise ValueError(f"size of {name} must be a power of 2, got {size}")
    return size.bit_length() - 1
