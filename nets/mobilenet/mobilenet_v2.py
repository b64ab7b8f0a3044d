"""MobileNet v2: inverted residual blocks with linear bottlenecks.

MobileNetV2: Inverted Residuals and Linear Bottlenecks, Sandler et al. 2018,
https://arxiv.org/abs/1801.04381, table 2.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet import mobilenet as mobilenet_network
from nets.mobilenet.definitions import Conv, ConvDefs, ExpandedConv
from nets.mobilenet.mobilenet import training_scope
from nets.parts.network import Network, preset

__all__ = [
    "NETWORKS",
    "V2_DEF",
    "mobilenet",
    "mobilenet_base",
    "mobilenet_v2_035",
    "mobilenet_v2_140",
    "training_scope",
]

# Rows of table 2: expansion, channels, repetitions, stride of the first repetition.
_BLOCKS = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]

V2_DEF = ConvDefs(
    layers=(
        Conv(32, kernel_size=3, stride=2),
        *(
            ExpandedConv(depth, expansion, stride=stride if repetition == 0 else 1)
            for expansion, depth, repetitions, stride in _BLOCKS
            for repetition in range(repetitions)
        ),
        Conv(1280),
    ),
    activation_fn=tf.nn.relu6,
    normalizer_fn=slim.batch_norm,
    normalizer_params={"center": True, "scale": True},
)


@mobilenet_network.image_network
def mobilenet(
    input_tensor: Any,
    num_classes: int | None = 1001,
    depth_multiplier: float = 1.0,
    scope: Any = "MobilenetV2",
    conv_defs: ConvDefs | None = None,
    finegrain_classification_mode: bool = False,
    min_depth: int | None = None,
    divisible_by: int | None = None,
    activation_fn: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> tuple[Any, dict[str, Any]]:
    """Builds MobileNet v2; use it under `training_scope()`.

    Args:
      input_tensor: `[batch, height, width, 1 or 3]` float32; designed for 224 x 224.
      num_classes: width of the logits; 0 or None returns the features before them.
      depth_multiplier: scales the number of channels of every layer.
      scope: variable scope.
      conv_defs: the layers; None for `V2_DEF`.
      finegrain_classification_mode: with `depth_multiplier` < 1 the last layer keeps
        its full width (section 6.1 of the paper).
      min_depth: the fewest channels of a layer; None for 8.
      divisible_by: each layer has a multiple of it as channels; None for 8.
      activation_fn: replaces ReLU6.
      **kwargs: `prediction_fn` (softmax), `reuse` (None), `base_only` (False),
        `use_reduce_mean_for_pooling` (False), `final_endpoint` (None), `output_stride`
        (None), `use_explicit_padding` (False), `is_training` (False): those of
        `mobilenet_network.mobilenet`.

    Returns:
      Logits `[batch, num_classes]`, or without classes the pooled features `[batch, 1, 1,
      depth]`; and the end points in order: `layer_1` ... `layer_19`,
      `layer_<n>/expansion_output`, `/depthwise_output` and `/output` of the blocks,
      `global_pool`, `Logits`, `Predictions`.

    Raises:
      ValueError: if `input_tensor` has another rank or channel count, `num_classes` is negative,
        or `depth_multiplier`, `min_depth`, `divisible_by`, `final_endpoint` or
        `output_stride` is invalid.
    """
    if conv_defs is None:
        conv_defs = V2_DEF
    if activation_fn is not None:
        conv_defs = dataclasses.replace(conv_defs, activation_fn=activation_fn)
    conv_defs = conv_defs.thinned(
        depth_multiplier,
        divisible_by=8 if divisible_by is None else divisible_by,
        min_depth=8 if min_depth is None else min_depth,
        keep_last=finegrain_classification_mode,
    )
    return mobilenet_network.mobilenet(
        input_tensor, conv_defs, num_classes=num_classes, scope=scope, **kwargs
    )


@slim.add_arg_scope
def mobilenet_base(
    input_tensor: Any, depth_multiplier: float = 1.0, **kwargs: Any
) -> tuple[Any, dict[str, Any]]:
    """Builds MobileNet v2 without pooling and logits.

    Takes the arguments of `mobilenet`, and returns the last layer's output
    `[batch, height / 32, width / 32, 1280]`, with the end points up to there.
    """
    return mobilenet(input_tensor, depth_multiplier=depth_multiplier, base_only=True, **kwargs)


mobilenet_v2_140 = preset(mobilenet, depth_multiplier=1.4)
mobilenet_v2_035 = preset(mobilenet, depth_multiplier=0.35, finegrain_classification_mode=True)

NETWORKS = {
    "mobilenet_v2": Network(mobilenet, training_scope),
    "mobilenet_v2_140": Network(mobilenet_v2_140, training_scope),
    "mobilenet_v2_035": Network(mobilenet_v2_035, training_scope),
}
