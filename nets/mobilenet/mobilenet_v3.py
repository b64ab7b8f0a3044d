"""MobileNet v3 small and large, their minimalistic variants, and MobileNet EdgeTPU.

Searching for MobileNetV3, Howard et al. 2019, https://arxiv.org/abs/1905.02244,
tables 1 and 2.  The minimalistic variants use ReLU and 3x3 kernels everywhere and
no squeeze-and-excitation.  EdgeTPU replaces the early depthwise convolutions by
full ones (https://research.google/blog/introducing-the-next-generation-of-on-device-vision-models-mobilenetv3-and-mobilenetedgetpu/).
"""

import dataclasses
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet import mobilenet as mobilenet_network
from nets.mobilenet.definitions import Conv, ConvDefs, ExpandedConv, Layer, PoolToPixel
from nets.mobilenet.mobilenet import training_scope
from nets.parts.depth import make_divisible
from nets.parts.network import Network, preset

__all__ = [
    "NETWORKS",
    "V3_EDGETPU",
    "V3_LARGE",
    "V3_LARGE_MINIMALISTIC",
    "V3_SMALL",
    "V3_SMALL_MINIMALISTIC",
    "edge_tpu",
    "edge_tpu_075",
    "large",
    "large_minimalistic",
    "mobilenet",
    "mobilenet_base",
    "small",
    "small_minimalistic",
    "training_scope",
]


def hard_swish(net: Any) -> Any:
    """Returns net * relu6(net + 3) / 6 (section 5.2 of the paper), of the same shape."""
    with tf.name_scope("hard_swish"):
        return net * tf.nn.relu6(net + 3.0) * (1.0 / 6.0)


def _gate(net: Any) -> Any:
    # Published checkpoints were trained with this rounded 1/6.
    return tf.nn.relu6(net + 3.0) * 0.16667


def squeeze_excite(net: Any) -> Any:
    """Scales each channel by a gate computed from the averages of all channels.

    Section 5.3 of the paper: two 1x1 convolutions with a quarter of the channels in
    between, and a hard sigmoid.

    Args:
      net: float32 [batch, height, width, channels].

    Returns:
      float32 of the same shape.
    """
    channels = net.shape.as_list()[3]
    with tf.variable_scope("squeeze_excite"):
        pooled = tf.reduce_mean(net, [1, 2], keepdims=True)
        with slim.arg_scope([slim.conv2d], kernel_size=[1, 1], normalizer_fn=None):
            squeezed = slim.conv2d(
                pooled, make_divisible(channels / 4), activation_fn=tf.nn.relu, scope="Conv"
            )
            gate = slim.conv2d(squeezed, channels, activation_fn=_gate, scope="Conv_1")
        return net * gate


_BATCH_NORM: dict[str, Any] = {
    "activation_fn": tf.nn.relu,
    "normalizer_fn": slim.batch_norm,
    "normalizer_params": {"center": True, "scale": True},
}
_SWISH: dict[str, Any] = {"activation_fn": hard_swish}
_EXCITED: dict[str, Any] = {"transform": squeeze_excite}

# Table 1.
V3_LARGE = ConvDefs(
    layers=(
        Conv(16, kernel_size=3, stride=2, **_SWISH),
        ExpandedConv(16, expansion=1),
        ExpandedConv(24, expansion=4, stride=2),
        ExpandedConv(24, expansion=3),
        ExpandedConv(40, expansion=3, kernel_size=5, stride=2, **_EXCITED),
        ExpandedConv(40, expansion=3, kernel_size=5, **_EXCITED),
        ExpandedConv(40, expansion=3, kernel_size=5, **_EXCITED),
        ExpandedConv(80, expansion=6, stride=2, **_SWISH),
        ExpandedConv(80, expansion=2.5, **_SWISH),
        ExpandedConv(80, expansion=184 / 80, **_SWISH),
        ExpandedConv(80, expansion=184 / 80, **_SWISH),
        ExpandedConv(112, expansion=6, **_EXCITED, **_SWISH),
        ExpandedConv(112, expansion=6, **_EXCITED, **_SWISH),
        ExpandedConv(160, expansion=6, kernel_size=5, stride=2, **_EXCITED, **_SWISH),
        ExpandedConv(160, expansion=6, kernel_size=5, **_EXCITED, **_SWISH),
        ExpandedConv(160, expansion=6, kernel_size=5, **_EXCITED, **_SWISH),
        Conv(960, **_SWISH),
        PoolToPixel(),
        Conv(1280, normalized=False, **_SWISH),
    ),
    **_BATCH_NORM,
)

# Table 2.
V3_SMALL = ConvDefs(
    layers=(
        Conv(16, kernel_size=3, stride=2, **_SWISH),
        ExpandedConv(16, expansion=1, stride=2, **_EXCITED),
        ExpandedConv(24, expansion=72 / 16, stride=2),
        ExpandedConv(24, expansion=88 / 24),
        ExpandedConv(40, expansion=4, kernel_size=5, stride=2, **_EXCITED, **_SWISH),
        ExpandedConv(40, expansion=6, kernel_size=5, **_EXCITED, **_SWISH),
        ExpandedConv(40, expansion=6, kernel_size=5, **_EXCITED, **_SWISH),
        ExpandedConv(48, expansion=3, kernel_size=5, **_EXCITED, **_SWISH),
        ExpandedConv(48, expansion=3, kernel_size=5, **_EXCITED, **_SWISH),
        ExpandedConv(96, expansion=6, kernel_size=5, stride=2, **_EXCITED, **_SWISH),
        ExpandedConv(96, expansion=6, kernel_size=5, **_EXCITED, **_SWISH),
        ExpandedConv(96, expansion=6, kernel_size=5, **_EXCITED, **_SWISH),
        Conv(576, **_SWISH),
        PoolToPixel(),
        Conv(1024, normalized=False, **_SWISH),
    ),
    **_BATCH_NORM,
)


def _minimalistic(conv_defs: ConvDefs) -> ConvDefs:
    """Returns the network with 3x3 kernels, ReLU and no squeeze-and-excitation."""

    def simpler(layer: Layer) -> Layer:
        if isinstance(layer, Conv):
            return dataclasses.replace(layer, activation_fn=None)
        if isinstance(layer, ExpandedConv):
            return dataclasses.replace(layer, activation_fn=None, kernel_size=3, transform=None)
        return layer

    return dataclasses.replace(conv_defs, layers=tuple(map(simpler, conv_defs.layers)))


V3_LARGE_MINIMALISTIC = _minimalistic(V3_LARGE)
V3_SMALL_MINIMALISTIC = _minimalistic(V3_SMALL)


def _edge_tpu_stage(
    depth: int, first_expansion: int, stride: int = 1, kernel_size: int = 3, fused: bool = False
) -> tuple[ExpandedConv, ...]:
    """Returns four blocks; the first one widens and has no residual connection."""
    first = ExpandedConv(
        depth, first_expansion, kernel_size, stride=stride, fused=fused, residual=False
    )
    return (first, *3 * [ExpandedConv(depth, 4, kernel_size, fused=fused)])


V3_EDGETPU = ConvDefs(
    layers=(
        Conv(32, kernel_size=3, stride=2),
        ExpandedConv(16, expansion=1, fused=True),
        *_edge_tpu_stage(32, first_expansion=8, stride=2, fused=True),
        *_edge_tpu_stage(48, first_expansion=8, stride=2, fused=True),
        *_edge_tpu_stage(96, first_expansion=8, stride=2),
        *_edge_tpu_stage(96, first_expansion=8),
        *_edge_tpu_stage(160, first_expansion=8, stride=2, kernel_size=5),
        ExpandedConv(192, expansion=8),
        Conv(1280),
    ),
    **_BATCH_NORM,
)


@mobilenet_network.image_network
def mobilenet(
    input_tensor: Any,
    num_classes: int | None = 1001,
    depth_multiplier: float = 1.0,
    scope: Any = "MobilenetV3",
    conv_defs: ConvDefs | None = None,
    finegrain_classification_mode: bool = False,
    use_groupnorm: bool = False,
    **kwargs: Any,
) -> tuple[Any, dict[str, Any]]:
    """Builds MobileNet v3; use it under `training_scope()`.

    Args:
      input_tensor: `[batch, height, width, 1 or 3]` float32; designed for 224 x 224.
      num_classes: width of the logits; 0 or None returns the features before them.
      depth_multiplier: scales the number of channels of every layer.
      scope: variable scope.
      conv_defs: the layers: `V3_LARGE` (None), `V3_SMALL`, `V3_LARGE_MINIMALISTIC`,
        `V3_SMALL_MINIMALISTIC`, `V3_EDGETPU`, or other ones.
      finegrain_classification_mode: with `depth_multiplier` < 1 the last layer keeps
        its full width.
      use_groupnorm: group normalization in place of batch normalization.
      **kwargs: `groups` (8) of group normalization; `prediction_fn` (softmax), `reuse`
        (None), `base_only` (False), `use_reduce_mean_for_pooling` (False),
        `final_endpoint` (None), `output_stride` (None), `use_explicit_padding` (False),
        `is_training` (False): those of `mobilenet_network.mobilenet`.

    Returns:
      Logits `[batch, num_classes]`, or without classes the pooled features `[batch, 1, 1,
      depth]`; and the end points in order: `layer_1` ... (19 for large,
      15 for small, 24 for EdgeTPU), `layer_<n>/expansion_output`, `/depthwise_output`
      and `/output` of the blocks, `global_pool`, `Logits`, `Predictions`.

    Raises:
      ValueError: if `input_tensor` has another rank or channel count, `num_classes` is negative,
        or `depth_multiplier`, `final_endpoint` or `output_stride` is invalid.
    """
    if conv_defs is None:
        conv_defs = V3_LARGE
    groups = kwargs.pop("groups", 8)
    if use_groupnorm:
        conv_defs = dataclasses.replace(
            conv_defs, normalizer_fn=slim.group_norm, normalizer_params={"groups": groups}
        )
    conv_defs = conv_defs.thinned(depth_multiplier, keep_last=finegrain_classification_mode)
    return mobilenet_network.mobilenet(
        input_tensor, conv_defs, num_classes=num_classes, scope=scope, **kwargs
    )


@slim.add_arg_scope
def mobilenet_base(
    input_tensor: Any, depth_multiplier: float = 1.0, **kwargs: Any
) -> tuple[Any, dict[str, Any]]:
    """Builds MobileNet v3 without the last pooling and logits.

    Takes the arguments of `mobilenet`, and returns the last layer's output,
    `[batch, 1, 1, 1280]` for `V3_LARGE`, with the end points up to there.
    """
    return mobilenet(input_tensor, depth_multiplier=depth_multiplier, base_only=True, **kwargs)


large = preset(mobilenet, conv_defs=V3_LARGE)
small = preset(mobilenet, conv_defs=V3_SMALL)
large_minimalistic = preset(mobilenet, conv_defs=V3_LARGE_MINIMALISTIC)
small_minimalistic = preset(mobilenet, conv_defs=V3_SMALL_MINIMALISTIC)
edge_tpu = preset(mobilenet, conv_defs=V3_EDGETPU, scope="MobilenetEdgeTPU")
edge_tpu_075 = preset(edge_tpu, depth_multiplier=0.75, finegrain_classification_mode=True)

NETWORKS = {
    "mobilenet_v3_small": Network(small, training_scope),
    "mobilenet_v3_large": Network(large, training_scope),
    "mobilenet_v3_small_minimalistic": Network(small_minimalistic, training_scope),
    "mobilenet_v3_large_minimalistic": Network(large_minimalistic, training_scope),
    "mobilenet_edgetpu": Network(edge_tpu, training_scope),
    "mobilenet_edgetpu_075": Network(edge_tpu_075, training_scope),
}
