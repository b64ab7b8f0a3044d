"""MobileNet v2: inverted residual blocks with linear bottlenecks.

MobileNetV2: Inverted Residuals and Linear Bottlenecks, Sandler et al. 2018,
https://arxiv.org/abs/1801.04381, table 2.
"""

import copy
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet import conv_blocks as ops
from nets.mobilenet import mobilenet as lib
from nets.mobilenet.definitions import ConvDefs, op, with_last_layer
from nets.parts.network import Network, check_at_least, wrapped_partial

__all__ = [
    "NETWORKS",
    "V2_DEF",
    "V2_DEF_GROUP_NORM",
    "expand_input",
    "mobilenet",
    "mobilenet_base",
    "mobilenet_base_group_norm",
    "mobilenet_v2_035",
    "mobilenet_v2_050",
    "mobilenet_v2_140",
    "op",
    "training_scope",
    "wrapped_partial",
]

expand_input = ops.expand_input_by_factor

# Rows of table 2: channels, repetitions, stride of the first repetition. The first block, which
# does not widen its input, comes before them.
_BLOCKS = [(24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)]
_CONVOLUTIONS = (slim.conv2d, slim.fully_connected, slim.separable_conv2d)


def _defaults(normalizer_fn: Callable[..., Any]) -> dict[Any, dict[str, Any]]:
    """Returns the keywords of the layers where they say nothing else."""
    return {
        _CONVOLUTIONS: {"normalizer_fn": normalizer_fn, "activation_fn": tf.nn.relu6},
        (ops.expanded_conv,): {
            "expansion_size": expand_input(6),
            "split_expansion": 1,
            "normalizer_fn": normalizer_fn,
            "residual": True,
        },
        (slim.conv2d, slim.separable_conv2d): {"padding": "SAME"},
    }


V2_DEF: ConvDefs = {
    "defaults": {
        (slim.batch_norm,): {"center": True, "scale": True},
        **_defaults(slim.batch_norm),
    },
    "spec": [
        op(slim.conv2d, stride=2, num_outputs=32, kernel_size=[3, 3]),
        op(ops.expanded_conv, expansion_size=expand_input(1, divisible_by=1), num_outputs=16),
        *(
            op(ops.expanded_conv, stride=stride if repetition == 0 else 1, num_outputs=depth)
            for depth, repetitions, stride in _BLOCKS
            for repetition in range(repetitions)
        ),
        op(slim.conv2d, stride=1, kernel_size=[1, 1], num_outputs=1280),
    ],
}
V2_DEF_GROUP_NORM: ConvDefs = {
    **copy.deepcopy(V2_DEF),
    "defaults": _defaults(slim.group_norm),
}


@lib.image_network
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
    """Builds MobileNet v2.

    Inference mode is created by default; to train, use it under `training_scope()`.

    Args:
      input_tensor: `[batch, height, width, channels]` float32; designed for 224 x 224.
      num_classes: width of the logits; 0 or None returns the features before them.
      depth_multiplier: scales the number of channels of every layer; with 0 each gets the fewest.
      scope: variable scope.
      conv_defs: the layers; None for `V2_DEF`.
      finegrain_classification_mode: with `depth_multiplier` < 1 the last layer keeps
        its full width (section 6.1 of the paper).
      min_depth: the fewest channels of a layer; None leaves it to the arg scope of
        `mobilenet.depth_multiplier`, 8.
      divisible_by: each layer has a multiple of it as channels; None likewise, 8.
      activation_fn: replaces ReLU6.
      **kwargs: `prediction_fn` (softmax), `reuse` (None), `base_only` (False),
        `use_reduce_mean_for_pooling` (False), `final_endpoint` (None), `output_stride`
        (None), `use_explicit_padding` (False), `is_training` (False): those of
        `mobilenet.mobilenet`.

    Returns:
      Logits `[batch, num_classes]`, or without classes the pooled features `[batch, 1, 1,
      depth]`; and the end points in order: `layer_1` ... `layer_19`,
      `layer_<n>/expansion_output`, `/depthwise_output` and `/output` of the blocks,
      `global_pool`, `Logits`, `Predictions`.

    Raises:
      ValueError: if `input_tensor` has another rank or an unknown channel count, `num_classes` is
        negative, or `depth_multiplier`, `min_depth`, `divisible_by`, `final_endpoint` or
        `output_stride` is invalid.
    """
    if "multiplier" in kwargs:
        raise ValueError(
            f"multiplier must be given as depth_multiplier, got multiplier={kwargs['multiplier']!r}"
        )
    conv_defs = V2_DEF if conv_defs is None else conv_defs
    if finegrain_classification_mode and depth_multiplier < 1:
        conv_defs = with_last_layer(conv_defs, multiplier=1.0)
    if activation_fn is not None:
        conv_defs = copy.deepcopy(conv_defs)
        defaults = conv_defs.setdefault("defaults", {})
        defaults.setdefault(_CONVOLUTIONS, {})["activation_fn"] = activation_fn
    depths = {"min_depth": min_depth, "divisible_by": divisible_by}
    for name, value in depths.items():
        if value is not None:
            check_at_least(name, value, 1)
    # What is None is left to an arg scope around this one.
    with lib.safe_arg_scope([lib.depth_multiplier], **depths):
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
    """Builds MobileNet v2 without pooling and logits.

    Takes the arguments of `mobilenet`, and returns the last layer's output
    `[batch, height / 32, width / 32, 1280]`, with the end points up to there.
    """
    return mobilenet(input_tensor, depth_multiplier=depth_multiplier, base_only=True, **kwargs)


@slim.add_arg_scope
def mobilenet_base_group_norm(
    input_tensor: Any, depth_multiplier: float = 1.0, **kwargs: Any
) -> tuple[Any, dict[str, Any]]:
    """Builds `mobilenet_base` with group normalization in place of batch normalization.

    Takes its arguments but `conv_defs`, and `groups` (8), that the channels are divided into.
    """
    defaults = V2_DEF_GROUP_NORM["defaults"]
    groups = {(slim.group_norm,): {"groups": kwargs.pop("groups", 8)}}
    kwargs["conv_defs"] = {**V2_DEF_GROUP_NORM, "defaults": {**defaults, **groups}}
    return mobilenet(input_tensor, depth_multiplier=depth_multiplier, base_only=True, **kwargs)


def training_scope(**kwargs: Any) -> Any:
    """Returns the arg scope of MobileNet v2; takes the keywords of `mobilenet.training_scope`."""
    return lib.training_scope(**kwargs)


mobilenet_v2_140 = wrapped_partial(mobilenet, depth_multiplier=1.4)
mobilenet_v2_050 = wrapped_partial(
    mobilenet, depth_multiplier=0.5, finegrain_classification_mode=True
)
mobilenet_v2_035 = wrapped_partial(
    mobilenet, depth_multiplier=0.35, finegrain_classification_mode=True
)

NETWORKS = {
    "mobilenet_v2": Network(mobilenet, lib.training_scope),
    "mobilenet_v2_140": Network(mobilenet_v2_140, lib.training_scope),
    "mobilenet_v2_035": Network(mobilenet_v2_035, lib.training_scope),
}
