"""The generator of CycleGAN: a residual network that turns images into images.

Unpaired Image-to-Image Translation using Cycle-Consistent Adversarial Networks, Zhu, Park, Isola
and Efros 2017, https://arxiv.org/abs/1703.10593, section 4 and appendix 7.2.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.network import check_choice

_RESIZE = {
    "nn_upsample_conv": tf.image.resize_nearest_neighbor,
    "bilinear_upsample_conv": tf.image.resize_bilinear,
}


def cyclegan_arg_scope(
    instance_norm_center: bool = True,
    instance_norm_scale: bool = True,
    instance_norm_epsilon: float = 0.001,
    weights_init_stddev: float = 0.02,
    weight_decay: float = 0.0,
) -> Any:
    """Returns the arg scope of the generator.

    Args:
      instance_norm_center: whether instance normalization adds `beta`.
      instance_norm_scale: whether it multiplies by `gamma`.
      instance_norm_epsilon: added to the variance.
      weights_init_stddev: standard deviation of the weights at the start.
      weight_decay: factor of the L2 losses; 0 for none.
    """
    with slim.arg_scope(
        [slim.conv2d],
        normalizer_fn=slim.instance_norm,
        normalizer_params={
            "center": instance_norm_center,
            "scale": instance_norm_scale,
            "epsilon": instance_norm_epsilon,
        },
        weights_initializer=tf.random_normal_initializer(0, weights_init_stddev),
        weights_regularizer=slim.l2_regularizer(weight_decay) if weight_decay else None,
    ) as scope:
        return scope


def cyclegan_upsample(
    net: Any,
    num_outputs: int,
    stride: Sequence[int],
    method: str = "conv2d_transpose",
    pad_mode: str = "REFLECT",
    align_corners: bool = False,
) -> Any:
    """Makes feature maps larger.

    Args:
      net: `[batch, height, width, channels]` float32.
      num_outputs: channels of the result.
      stride: by how much height and width grow; 2 for `conv2d_transpose`.
      method: `nn_upsample_conv` or `bilinear_upsample_conv`, which resize before a convolution, or
        `conv2d_transpose`.
      pad_mode: how `tf.pad` pads before that convolution.
      align_corners: whether resizing keeps the corners' values.

    Returns:
      `[batch, stride[0] * height, stride[1] * width, num_outputs]` float32.

    Raises:
      ValueError: if `method` is none of them.
    """
    check_choice("method", method, (*_RESIZE, "conv2d_transpose"))
    with tf.variable_scope("upconv"):
        if method == "conv2d_transpose":
            net = slim.conv2d_transpose(
                net, num_outputs, kernel_size=[3, 3], stride=stride, padding="VALID"
            )
            # A kernel of 3 leaves one row and column more than twice as many; without the first
            # ones the result lies where the encoder's convolutions of stride 2 took it from.
            return net[:, 1:, 1:, :]
        shape = tf.shape(net)
        size = [stride[0] * shape[1], stride[1] * shape[2]]
        net = _padded(_RESIZE[method](net, size, align_corners=align_corners), (3, 3), pad_mode)
        return slim.conv2d(net, num_outputs, kernel_size=[3, 3], padding="VALID")


def cyclegan_generator_resnet(
    images: Any,
    arg_scope_fn: Callable[[], Any] = cyclegan_arg_scope,
    num_resnet_blocks: int = 6,
    num_filters: int = 64,
    upsample_fn: Callable[..., Any] = cyclegan_upsample,
    kernel_size: int | Sequence[int] = 3,
    tanh_linear_slope: float = 0.0,
    is_training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds the generator: two layers of stride 2, residual blocks, two that double the size.

    Args:
      images: `[batch, height, width, channels]` float32; height and width are multiples of 4.
      arg_scope_fn: returns the arg scope of the layers.
      num_resnet_blocks: residual blocks; the paper has 6 for 128 x 128 and 9 for larger images.
      num_filters: channels of the first layer.
      upsample_fn: `upsample_fn(net, num_outputs=, stride=)` doubles height and width.
      kernel_size: of the layers but the first and the last, which have 7 x 7.
      tanh_linear_slope: factor of the logits that are added to their `tanh`.
      is_training: changes nothing.

    Returns:
      Images `[batch, height, width, channels]`, and the end points `encoder_0` to `encoder_2`,
      `resnet_block_0` and so on, `decoder1`, `decoder2`, `logits`, and `predictions`.

    Raises:
      ValueError: if `images` has another rank or unknown channels, or a side is no multiple of 4.
    """
    num_outputs = _check_images(images)
    height, width = (kernel_size,) * 2 if isinstance(kernel_size, int) else kernel_size
    kernel = (height, width)
    end_points: dict[str, Any] = {}
    with slim.arg_scope(arg_scope_fn()):
        with tf.variable_scope("input"):
            net = slim.conv2d(_padded(images, (7, 7)), num_filters, [7, 7], padding="VALID")
            end_points["encoder_0"] = net
        with tf.variable_scope("encoder"):
            for i in (1, 2):
                net = _conv(net, num_filters * 2**i, kernel, stride=2)
                end_points[f"encoder_{i}"] = net
        with tf.variable_scope("residual_blocks"):
            for i in range(num_resnet_blocks):
                with tf.variable_scope(f"block_{i}"):
                    inner = _conv(net, num_filters * 4, kernel)
                    net += _conv(inner, num_filters * 4, kernel, activation_fn=None)
                end_points[f"resnet_block_{i}"] = net
        with (
            tf.variable_scope("decoder"),
            slim.arg_scope([slim.conv2d], kernel_size=kernel, stride=1, activation_fn=tf.nn.relu),
        ):
            for i in (1, 2):
                with tf.variable_scope(f"decoder{i}"):
                    net = upsample_fn(net, num_outputs=num_filters * 2 // i, stride=[2, 2])
                end_points[f"decoder{i}"] = net
        with tf.variable_scope("output"):
            logits = slim.conv2d(
                *(_padded(net, (7, 7)), num_outputs, [7, 7]),
                activation_fn=None,
                normalizer_fn=None,
                padding="VALID",
            )
    logits = tf.reshape(logits, tf.shape(images))
    logits.set_shape(images.shape)
    end_points["logits"] = logits
    end_points["predictions"] = tf.tanh(logits) + logits * tanh_linear_slope
    return end_points["predictions"], end_points


def _conv(net: Any, channels: int, kernel: tuple[int, int], **keywords: Any) -> Any:
    return slim.conv2d(_padded(net, kernel), channels, kernel, padding="VALID", **keywords)


def _padded(net: Any, kernel: tuple[int, int], mode: str = "REFLECT") -> Any:
    """Pads height and width by what a kernel without padding takes from them."""
    margins = [[(side - 1) // 2, side // 2] for side in kernel]
    return tf.pad(net, [[0, 0], *margins, [0, 0]], mode)


def _check_images(images: Any) -> int:
    """Returns the number of channels of images that the generator takes."""
    if images.shape.rank != 4:
        raise ValueError(f"images must have rank 4, got shape {images.shape}")
    *sides, channels = images.shape.as_list()[1:]
    if any(side and side % 4 for side in sides):
        raise ValueError(
            f"height and width of images must be multiples of 4, got shape {images.shape}"
        )
    if channels is None:
        raise ValueError(f"images must have a known number of channels, got shape {images.shape}")
    return int(channels)
