"""Pix2pix: a U-Net that turns images into images, and the discriminator of patches beside it.

Image-to-Image Translation with Conditional Adversarial Networks, Isola, Zhu, Zhou and Efros 2017,
https://arxiv.org/abs/1611.07004, section 3.2 and appendix 6.1.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.network import check_choice


class Block(NamedTuple):
    """One layer of the encoder, and the layer of the decoder that its output is joined to.

    Attributes:
      num_filters: channels of both.
      decoder_keep_prob: share of the decoder's features that dropout keeps; 0 for no dropout.
    """

    num_filters: int
    decoder_keep_prob: float


_BLOCKS = (
    *(Block(64, 0.5), Block(128, 0.5), Block(256, 0.5)),
    *(Block(512, 0), Block(512, 0), Block(512, 0), Block(512, 0)),
)


def pix2pix_arg_scope() -> Any:
    """Returns the arg scope of both networks: instance normalization, normal start of 0.02."""
    with slim.arg_scope(
        [slim.conv2d, slim.conv2d_transpose],
        normalizer_fn=slim.instance_norm,
        normalizer_params={"center": True, "scale": True, "epsilon": 0.00001},
        weights_initializer=tf.random_normal_initializer(0, 0.02),
    ) as scope:
        return scope


def upsample(
    net: Any, num_outputs: int, kernel_size: Sequence[int], method: str = "nn_upsample_conv"
) -> Any:
    """Makes feature maps larger.

    Args:
      net: `[batch, height, width, channels]` float32.
      num_outputs: channels of the result.
      kernel_size: by how much height and width grow.
      method: `nn_upsample_conv`, nearest neighbours and a convolution, or `conv2d_transpose`.

    Returns:
      `[batch, kernel_size[0] * height, kernel_size[1] * width, num_outputs]` float32.

    Raises:
      ValueError: if `method` is neither.
    """
    check_choice("method", method, ("nn_upsample_conv", "conv2d_transpose"))
    if method == "conv2d_transpose":
        return slim.conv2d_transpose(
            net, num_outputs, [4, 4], stride=kernel_size, activation_fn=None
        )
    shape = tf.shape(net)
    size = [kernel_size[0] * shape[1], kernel_size[1] * shape[2]]
    net = tf.image.resize_nearest_neighbor(net, size)
    return slim.conv2d(net, num_outputs, [4, 4], activation_fn=None)


def pix2pix_generator(
    net: Any,
    num_outputs: int,
    blocks: Sequence[Block] | None = None,
    upsample_method: str = "nn_upsample_conv",
    is_training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds the U-Net; dropout is active in training and after it: section 3.2 of the paper.

    Args:
      net: images `[batch, height, width, channels]` float32; height and width are multiples of
        `2 ** len(blocks)`.
      num_outputs: channels of the images that are made.
      blocks: layers from the outermost on; None for the seven of the paper's 128 x 128.
      upsample_method: as `method` of `upsample`.
      is_training: changes nothing.

    Returns:
      Logits `[batch, height, width, num_outputs]`, and the end points `encoder0`, `encoder1` and so
      on, `decoder0` and so on, from the innermost, `logits`, and `predictions`, their `tanh`.

    Raises:
      ValueError: if `net` has another rank, unknown sides or sides that cannot be halved by every
        block, or `upsample_method` is unknown.
    """
    blocks = blocks or _BLOCKS
    _check_sides(net, 2 ** len(blocks))
    shape = [-1, *net.shape.as_list()[1:3], num_outputs]
    end_points: dict[str, Any] = {}
    encoded = _encode(net, blocks, end_points)
    net = _decode(encoded, blocks, upsample_method, end_points)
    with tf.variable_scope("output"):
        logits = slim.conv2d(net, num_outputs, [4, 4], activation_fn=None, normalizer_fn=None)
        end_points["logits"] = tf.reshape(logits, shape)
        end_points["predictions"] = tf.tanh(end_points["logits"])
    return end_points["logits"], end_points


def _encode(net: Any, blocks: Sequence[Block], end_points: dict[str, Any]) -> list[Any]:
    """Halves height and width by each block; returns what each block makes."""
    made = []
    last = len(blocks) - 1
    with (
        tf.variable_scope("encoder"),
        slim.arg_scope([slim.conv2d], kernel_size=[4, 4], stride=2, activation_fn=tf.nn.leaky_relu),
    ):
        for i, block in enumerate(blocks):
            keywords: dict[str, Any] = {} if 0 < i < last else {"normalizer_fn": None}
            if 0 < i == last:
                keywords["activation_fn"] = None
            net = end_points[f"encoder{i}"] = slim.conv2d(net, block.num_filters, **keywords)
            made.append(net)
    return made


def _decode(
    encoded: list[Any], blocks: Sequence[Block], method: str, end_points: dict[str, Any]
) -> Any:
    """Doubles height and width by each block, from the last; joins what the encoder made there."""
    net = encoded[-1]
    with tf.variable_scope("decoder"), slim.arg_scope([slim.dropout], is_training=True):
        for i, block in enumerate(reversed(blocks)):
            if i:
                net = tf.concat([net, encoded[-i - 1]], axis=3)
            net = upsample(tf.nn.relu(net), block.num_filters, [2, 2], method)
            if block.decoder_keep_prob > 0:
                net = slim.dropout(net, keep_prob=block.decoder_keep_prob)
            end_points[f"decoder{i}"] = net
    return net


def pix2pix_discriminator(
    net: Any,
    num_filters: Sequence[int],
    padding: int = 2,
    pad_mode: str = "REFLECT",
    activation_fn: Callable[..., Any] | None = tf.nn.leaky_relu,
    is_training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds the discriminator, which judges each patch of the images.

    Args:
      net: images `[batch, height, width, channels]` float32, of which the first and the second of
        a pair are joined along the channels.
      num_filters: channels of each layer but the last; all but the last of them have stride 2.
      padding: pixels that each layer gets on each side.
      pad_mode: `CONSTANT`, `REFLECT` or `SYMMETRIC`, as of `tf.pad`.
      activation_fn: activation of all layers but the last.
      is_training: changes nothing.

    Returns:
      Logits `[batch, rows, columns, 1]`, one for each patch, and the end points `conv0`, `conv1`
      and so on, `logits`, and `predictions`, their sigmoid.

    Raises:
      ValueError: if `net` has another rank, or `num_filters` is empty.
    """
    if net.shape.rank != 4:
        raise ValueError(f"net must have rank 4, got shape {net.shape}")
    if not num_filters:
        raise ValueError(f"num_filters must have at least 1 number, got {num_filters}")
    margins = [[0, 0], [padding, padding], [padding, padding], [0, 0]]
    last = max(len(num_filters) - 1, 1)
    end_points: dict[str, Any] = {}

    def layer(net: Any, number: int, channels: int, **keywords: Any) -> Any:
        padded = tf.pad(net, margins, pad_mode) if padding else net
        return slim.conv2d(padded, channels, scope=f"conv{number}", **keywords)

    with slim.arg_scope(
        [slim.conv2d], kernel_size=[4, 4], stride=2, padding="VALID", activation_fn=activation_fn
    ):
        net = end_points["conv0"] = layer(net, 0, num_filters[0], normalizer_fn=None)
        for i in range(1, len(num_filters)):
            stride = 1 if i == last else 2
            net = end_points[f"conv{i}"] = layer(net, i, num_filters[i], stride=stride)
        end_points["logits"] = layer(
            net, len(num_filters), 1, stride=1, activation_fn=None, normalizer_fn=None
        )
    end_points["predictions"] = tf.sigmoid(end_points["logits"])
    return end_points["logits"], end_points


def _check_sides(net: Any, multiple: int) -> None:
    if net.shape.rank != 4:
        raise ValueError(f"net must have rank 4, got shape {net.shape}")
    if any(side is None or side % multiple for side in net.shape.as_list()[1:3]):
        raise ValueError(
            f"height and width of net must be multiples of {multiple}, got shape {net.shape}"
        )
