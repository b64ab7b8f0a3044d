"""The layers that MobileNet v3 adds: hard swish, squeeze-and-excitation, fused blocks.

Searching for MobileNetV3, Howard et al. 2019, https://arxiv.org/abs/1905.02244, section 5.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet import conv_blocks as ops
from nets.mobilenet.definitions import Op, op
from nets.mobilenet.splitting import fused_conv


def hard_swish(x: Any) -> Any:
    """Returns x * relu6(x + 3) / 6 (section 5.2 of the paper), of the same shape."""
    with tf.name_scope("hard_swish"):
        return x * tf.nn.relu6(x + 3.0) * (1.0 / 6.0)


def _gate(net: Any) -> Any:
    # Published checkpoints were trained with this rounded 1/6.
    return tf.nn.relu6(net + 3.0) * 0.16667


# A quarter of the channels in between, and a hard sigmoid as gate.
squeeze_excite = functools.partial(
    ops.squeeze_excite, squeeze_factor=4, inner_activation_fn=tf.nn.relu, gating_fn=_gate
)


def _excited(expansion_tensor: Any, input_tensor: Any) -> Any:
    return squeeze_excite(expansion_tensor)


def reduce_to_1x1(input_tensor: Any, default_size: int = 7, **kwargs: Any) -> Any:
    """Averages a square map to one pixel, another one over windows of `default_size`.

    Args:
      input_tensor: `[batch, height, width, channels]` float32.
      default_size: height and width of a window where the map is not square or of unknown size;
        less where the map is smaller.
      **kwargs: go to `slim.avg_pool2d`, but for `rate` and `use_explicit_padding`, as there is
        nothing to dilate or to pad.

    Returns:
      `[batch, 1, 1, channels]` of a square map.
    """
    height, width = input_tensor.shape.as_list()[1:3]
    kernel = [default_size if side is None else min(side, default_size) for side in (height, width)]
    if height is not None and height == width:
        kernel = [height, width]
    kwargs = {key: kwargs[key] for key in kwargs if key not in {"rate", "use_explicit_padding"}}
    return slim.avg_pool2d(input_tensor, kernel_size=kernel, **kwargs)


def mbv3_op(
    ef: float,
    n: int,
    k: int,
    s: int = 1,
    act: Callable[..., Any] = tf.nn.relu,
    se: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Op:
    """Returns a block as layer.

    Args:
      ef: how many times it widens its input.
      n: channels of the output.
      k: height and width of its depthwise kernel.
      s: stride.
      act: activation after the first two convolutions.
      se: `expansion_transform`, such as squeeze-and-excitation.
      **kwargs: further ones of `conv_blocks.expanded_conv`.
    """
    return op(
        ops.expanded_conv,
        expansion_size=ops.expand_input_by_factor(ef),
        kernel_size=(k, k),
        stride=s,
        num_outputs=n,
        inner_activation_fn=act,
        expansion_transform=se,
        **kwargs,
    )


mbv3_op_se = functools.partial(mbv3_op, se=_excited)


def mbv3_fused(ef: float, n: int, k: int, s: int = 1, **kwargs: Any) -> Op:
    """Returns a block whose first two convolutions are one full convolution, as layer.

    Args:
      ef: how many times it widens its input; with 1 there is only the 1x1 convolution.
      n: channels of the output.
      k: height and width of the full kernel.
      s: stride.
      **kwargs: further ones of `conv_blocks.expanded_conv`.

    Raises:
      ValueError: if there is no convolution that could take the stride.
    """
    if ef == 1 and s != 1:
        raise ValueError(
            f"s (stride) must be 1 in a fused block with ef 1, which has only the 1x1 convolution"
            f" to {n}, got {s}"
        )
    return op(
        ops.expanded_conv,
        expansion_size=ops.expand_input_by_factor(ef),
        kernel_size=(k, k),
        stride=s,
        num_outputs=n,
        depthwise_location=None,
        expansion_fn=fused_conv,
        **kwargs,
    )


def _defaults(normalizer_fn: Callable[..., Any], **keywords: Any) -> dict[Any, dict[str, Any]]:
    return {
        (ops.expanded_conv,): {"normalizer_fn": normalizer_fn, "residual": True},
        (slim.conv2d, slim.fully_connected, slim.separable_conv2d): {
            "normalizer_fn": normalizer_fn,
            "activation_fn": tf.nn.relu,
        },
        (normalizer_fn,): keywords,
    }


DEFAULTS = _defaults(slim.batch_norm, center=True, scale=True)
DEFAULTS_GROUP_NORM = _defaults(slim.group_norm, groups=8)
