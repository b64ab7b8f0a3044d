"""MobileNet v3 small and large, their minimalistic variants, and MobileNet EdgeTPU.

Searching for MobileNetV3, Howard et al. 2019, https://arxiv.org/abs/1905.02244,
tables 1 and 2.  The minimalistic variants use ReLU and 3x3 kernels everywhere and
no squeeze-and-excitation.  EdgeTPU replaces the early depthwise convolutions by
full ones (https://research.google/blog/introducing-the-next-generation-of-on-device-vision-models-mobilenetv3-and-mobilenetedgetpu/).
"""

import copy
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet import conv_blocks as ops
from nets.mobilenet import mobilenet as lib
from nets.mobilenet.definitions import ConvDefs, Op, op, with_last_layer
from nets.mobilenet.mobilenet import training_scope
from nets.mobilenet.v3_layers import (
    DEFAULTS,
    DEFAULTS_GROUP_NORM,
    hard_swish,
    mbv3_fused,
    mbv3_op,
    mbv3_op_se,
    reduce_to_1x1,
    squeeze_excite,
)
from nets.parts import network
from nets.parts.network import Network

__all__ = [
    "DEFAULTS",
    "DEFAULTS_GROUP_NORM",
    "NETWORKS",
    "V3_EDGETPU",
    "V3_LARGE",
    "V3_LARGE_DETECTION",
    "V3_LARGE_MINIMALISTIC",
    "V3_SMALL",
    "V3_SMALL_DETECTION",
    "V3_SMALL_MINIMALISTIC",
    "edge_tpu",
    "edge_tpu_075",
    "expand_input",
    "hard_swish",
    "large",
    "large_minimalistic",
    "mbv3_fused",
    "mbv3_op",
    "mbv3_op_se",
    "mobilenet",
    "mobilenet_base",
    "op",
    "reduce_to_1x1",
    "small",
    "small_minimalistic",
    "squeeze_excite",
    "training_scope",
    "wrapped_partial",
]

expand_input = ops.expand_input_by_factor


def _conv(depth: int, k: int = 1, s: int = 1, **keywords: Any) -> Op:
    return op(slim.conv2d, stride=s, num_outputs=depth, kernel_size=(k, k), **keywords)


_SWISH: dict[str, Any] = {"activation_fn": hard_swish}

# Table 1.
V3_LARGE: ConvDefs = {
    "defaults": DEFAULTS,
    "spec": [
        _conv(16, k=3, s=2, **_SWISH),
        mbv3_op(ef=1, n=16, k=3),
        mbv3_op(ef=4, n=24, k=3, s=2),
        mbv3_op(ef=3, n=24, k=3),
        mbv3_op_se(ef=3, n=40, k=5, s=2),
        mbv3_op_se(ef=3, n=40, k=5),
        mbv3_op_se(ef=3, n=40, k=5),
        mbv3_op(ef=6, n=80, k=3, s=2, act=hard_swish),
        mbv3_op(ef=2.5, n=80, k=3, act=hard_swish),
        mbv3_op(ef=184 / 80, n=80, k=3, act=hard_swish),
        mbv3_op(ef=184 / 80, n=80, k=3, act=hard_swish),
        mbv3_op_se(ef=6, n=112, k=3, act=hard_swish),
        mbv3_op_se(ef=6, n=112, k=3, act=hard_swish),
        mbv3_op_se(ef=6, n=160, k=5, s=2, act=hard_swish),
        mbv3_op_se(ef=6, n=160, k=5, act=hard_swish),
        mbv3_op_se(ef=6, n=160, k=5, act=hard_swish),
        _conv(960, **_SWISH),
        op(reduce_to_1x1, default_size=7, stride=1),
        _conv(1280, normalizer_fn=None, **_SWISH),
    ],
}

# Table 2.
V3_SMALL: ConvDefs = {
    "defaults": DEFAULTS,
    "spec": [
        _conv(16, k=3, s=2, **_SWISH),
        mbv3_op_se(ef=1, n=16, k=3, s=2),
        mbv3_op(ef=72 / 16, n=24, k=3, s=2),
        mbv3_op(ef=88 / 24, n=24, k=3),
        mbv3_op_se(ef=4, n=40, k=5, s=2, act=hard_swish),
        mbv3_op_se(ef=6, n=40, k=5, act=hard_swish),
        mbv3_op_se(ef=6, n=40, k=5, act=hard_swish),
        mbv3_op_se(ef=3, n=48, k=5, act=hard_swish),
        mbv3_op_se(ef=3, n=48, k=5, act=hard_swish),
        mbv3_op_se(ef=6, n=96, k=5, s=2, act=hard_swish),
        mbv3_op_se(ef=6, n=96, k=5, act=hard_swish),
        mbv3_op_se(ef=6, n=96, k=5, act=hard_swish),
        _conv(576, **_SWISH),
        op(reduce_to_1x1, default_size=7, stride=1),
        _conv(1024, normalizer_fn=None, **_SWISH),
    ],
}


def _minimalistic(conv_defs: ConvDefs) -> ConvDefs:
    """Returns the network with 3x3 kernels, ReLU and no squeeze-and-excitation."""
    simpler = copy.deepcopy(conv_defs)
    for layer in simpler["spec"]:
        layer.params.pop("activation_fn", None)
        if layer.op is ops.expanded_conv:
            simple = {"kernel_size": (3, 3), "inner_activation_fn": tf.nn.relu}
            layer.params.update(simple, expansion_transform=None)
    return simpler


V3_LARGE_MINIMALISTIC = _minimalistic(V3_LARGE)
V3_SMALL_MINIMALISTIC = _minimalistic(V3_SMALL)


def _for_detection(conv_defs: ConvDefs, first: int, last: int) -> ConvDefs:
    """Returns the network with half the channels from one layer to another (section 6.3)."""
    thinner = copy.deepcopy(conv_defs)
    for layer in thinner["spec"][first : last + 1]:
        layer.params["num_outputs"] = round(layer.params["num_outputs"] / 2)
    return thinner


V3_LARGE_DETECTION = _for_detection(V3_LARGE, 13, 16)
V3_SMALL_DETECTION = _for_detection(V3_SMALL, 9, 12)


def _edge_tpu_stage(
    block: Callable[..., Op], n: int, s: int = 1, k: int = 3, **first: Any
) -> list[Op]:
    """Returns four blocks; the first one widens more."""
    return [block(ef=8, n=n, k=k, s=s, **first), *(block(ef=4, n=n, k=k) for _ in range(3))]


V3_EDGETPU: ConvDefs = {
    "defaults": DEFAULTS,
    "spec": [
        _conv(32, k=3, s=2),
        mbv3_fused(ef=1, n=16, k=3),
        *_edge_tpu_stage(mbv3_fused, 32, s=2),
        *_edge_tpu_stage(mbv3_fused, 48, s=2),
        *_edge_tpu_stage(mbv3_op, 96, s=2),
        *_edge_tpu_stage(mbv3_op, 96, residual=False),
        *_edge_tpu_stage(mbv3_op, 160, s=2, k=5),
        mbv3_op(ef=8, n=192, k=3),
        _conv(1280),
    ],
}


@lib.image_network
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
    """Builds MobileNet v3.

    Inference mode is created by default; to train, use it under `training_scope()`.

    Args:
      input_tensor: `[batch, height, width, channels]` float32; designed for 224 x 224.
      num_classes: width of the logits; 0 or None returns the features before them.
      depth_multiplier: scales the number of channels of every layer; with 0 each gets the fewest,
        `min_depth` in the arg scope of `mobilenet.depth_multiplier`.
      scope: variable scope.
      conv_defs: the layers: `V3_LARGE` (None), `V3_SMALL`, `V3_LARGE_MINIMALISTIC`,
        `V3_SMALL_MINIMALISTIC`, `V3_EDGETPU`, `V3_LARGE_DETECTION`, `V3_SMALL_DETECTION`, or
        other ones.
      finegrain_classification_mode: the last layer keeps its width whatever `depth_multiplier`.
      use_groupnorm: group normalization in place of batch normalization.
      **kwargs: `groups` (8) of group normalization; `prediction_fn` (softmax), `reuse`
        (None), `base_only` (False), `use_reduce_mean_for_pooling` (False),
        `final_endpoint` (None), `output_stride` (None), `use_explicit_padding` (False),
        `is_training` (False): those of `mobilenet.mobilenet`.

    Returns:
      Logits `[batch, num_classes]`, or without classes the pooled features `[batch, 1, 1,
      depth]`; and the end points in order: `layer_1` ... (19 for large,
      15 for small, 24 for EdgeTPU), `layer_<n>/expansion_output`, `/depthwise_output`
      and `/output` of the blocks, `global_pool`, `Logits`, `Predictions`.

    Raises:
      ValueError: if `input_tensor` has another rank or an unknown channel count, `num_classes` is
        negative, or `depth_multiplier`, `final_endpoint` or `output_stride` is invalid.
    """
    if "multiplier" in kwargs:
        raise ValueError(
            f"multiplier must be given as depth_multiplier, got multiplier={kwargs['multiplier']!r}"
        )
    conv_defs = V3_LARGE if conv_defs is None else conv_defs
    if finegrain_classification_mode:
        conv_defs = with_last_layer(conv_defs, multiplier=1.0)
    if use_groupnorm:
        groups = {(slim.group_norm,): {"groups": kwargs.pop("groups", 8)}}
        conv_defs = {**conv_defs, "defaults": {**DEFAULTS_GROUP_NORM, **groups}}
    return lib.mobilenet(
        input_tensor,
        num_classes=num_classes,
        conv_defs=conv_defs,
        scope=scope,
        multiplier=depth_multiplier,
        **kwargs,
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


def wrapped_partial(
    func: Callable[..., Any], new_defaults: dict[str, Any] | None = None, **kwargs: Any
) -> Callable[..., Any]:
    """Returns `func` with other defaults for keywords: `new_defaults` and `kwargs`."""
    return network.wrapped_partial(func, **(new_defaults or {}), **kwargs)


large = wrapped_partial(mobilenet, conv_defs=V3_LARGE)
small = wrapped_partial(mobilenet, conv_defs=V3_SMALL)
large_minimalistic = wrapped_partial(mobilenet, conv_defs=V3_LARGE_MINIMALISTIC)
small_minimalistic = wrapped_partial(mobilenet, conv_defs=V3_SMALL_MINIMALISTIC)
edge_tpu = wrapped_partial(mobilenet, {"scope": "MobilenetEdgeTPU"}, conv_defs=V3_EDGETPU)
edge_tpu_075 = wrapped_partial(edge_tpu, depth_multiplier=0.75, finegrain_classification_mode=True)

NETWORKS = {
    "mobilenet_v3_small": Network(small, training_scope),
    "mobilenet_v3_large": Network(large, training_scope),
    "mobilenet_v3_small_minimalistic": Network(small_minimalistic, training_scope),
    "mobilenet_v3_large_minimalistic": Network(large_minimalistic, training_scope),
    "mobilenet_edgetpu": Network(edge_tpu, training_scope),
    "mobilenet_edgetpu_075": Network(edge_tpu_075, training_scope),
}
