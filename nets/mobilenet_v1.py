"""MobileNet v1: depthwise separable convolutions.

MobileNets: Efficient Convolutional Neural Networks for Mobile Vision Applications,
Howard et al. 2017, https://arxiv.org/abs/1704.04861, table 1.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet.dilation import strides_and_rates
from nets.mobilenet.padding import fixed_padding
from nets.parts.depth import check_depths, scaled
from nets.parts.network import Images, Network, check_choice, takes, wrapped_partial
from nets.parts.squeeze import squeeze_pixel


class Conv(NamedTuple):
    """A full convolution: kernel [height, width], stride, number of outputs."""

    kernel: Sequence[int]
    stride: int
    depth: int


class DepthSepConv(NamedTuple):
    """A depthwise convolution of kernel and stride, and a 1x1 one to `depth` outputs."""

    kernel: Sequence[int]
    stride: int
    depth: int


ConvDefs = Sequence[Conv | DepthSepConv]

# Table 1 without pooling and logits.
MOBILENETV1_CONV_DEFS: list[Conv | DepthSepConv] = [
    Conv(kernel=[3, 3], stride=2, depth=32),
    *(
        DepthSepConv(kernel=[3, 3], stride=stride, depth=depth)
        for stride, depth in [
            *[(1, 64), (2, 128), (1, 128), (2, 256), (1, 256), (2, 512)],
            *5 * [(1, 512)],
            *[(2, 1024), (1, 1024)],
        ]
    ),
]


class _Step(NamedTuple):
    """One convolution; depthwise if `depth` is None. Its name is scope and end point."""

    name: str
    kernel: Sequence[int]
    stride: int
    rate: int
    depth: int | None


def _steps(conv_defs: ConvDefs, output_stride: int | None) -> list[_Step]:
    """Splits the layers into single convolutions, with dilation for `output_stride`."""
    spatials = strides_and_rates([conv_def.stride for conv_def in conv_defs], output_stride)
    steps = []
    for number, (conv_def, spatial) in enumerate(zip(conv_defs, spatials, strict=True)):
        kernel, depth = conv_def.kernel, conv_def.depth
        name = f"Conv2d_{number}"
        if isinstance(conv_def, Conv):
            steps.append(_Step(name, kernel, *spatial, depth))
        else:
            steps.append(_Step(f"{name}_depthwise", kernel, *spatial, None))
            steps.append(_Step(f"{name}_pointwise", [1, 1], 1, 1, depth))
    return steps


def mobilenet_v1_base(
    inputs: Any,
    final_endpoint: str = "Conv2d_13_pointwise",
    min_depth: int = 8,
    depth_multiplier: float = 1.0,
    conv_defs: ConvDefs | None = None,
    output_stride: int | None = None,
    use_explicit_padding: bool = False,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Builds the convolutions of MobileNet v1, up to `final_endpoint`.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      final_endpoint: the last layer to build: `Conv2d_0`, `Conv2d_1_depthwise`,
        `Conv2d_1_pointwise`, ... `Conv2d_13_pointwise`.
      min_depth: the fewest channels of a layer.
      depth_multiplier: scales the number of channels of every layer.
      conv_defs: the layers; None for `MOBILENETV1_CONV_DEFS`.
      output_stride: input size / output size, 1, 2, 4, 8, 16 or 32; later strides
        become dilation. None for 32.
      use_explicit_padding: pads by the kernel size alone, where SAME padding
        depends on the input size too.
      scope: variable scope.

    Returns:
      The last layer's output `[batch, height / stride, width / stride, depth]` and the
      end points, one per layer built, under the names above.

    Raises:
      ValueError: if `final_endpoint`, `depth_multiplier`, `min_depth` or `output_stride` is
        invalid.
    """
    check_depths(depth_multiplier, min_depth)
    steps = _steps(MOBILENETV1_CONV_DEFS if conv_defs is None else conv_defs, output_stride)
    names = [step.name for step in steps]
    check_choice("final_endpoint", final_endpoint, names)
    end_points: dict[str, Any] = {}
    net = inputs
    padding = "VALID" if use_explicit_padding else "SAME"
    with (
        tf.variable_scope(scope, "MobilenetV1", [inputs]),
        slim.arg_scope([slim.conv2d, slim.separable_conv2d], padding=padding),
    ):
        for name, kernel, stride, rate, depth in steps[: names.index(final_endpoint) + 1]:
            if use_explicit_padding:
                net = fixed_padding(net, kernel, rate)
            if depth is None:
                conv, width = slim.separable_conv2d, None
            else:
                conv, width = slim.conv2d, scaled(depth, depth_multiplier, min_depth)
            net = conv(net, width, kernel, stride=stride, rate=rate, scope=name)
            end_points[name] = net
    return net, end_points


def _pooled(net: Any, global_pool: bool) -> tuple[str, Any]:
    """Averages over the whole feature map, or over 7x7 pixels (all of a smaller map).

    Returns:
      The name of the end point, and `[batch, height, width, depth]`.
    """
    if global_pool:
        return "global_pool", tf.reduce_mean(net, [1, 2], keepdims=True, name="global_pool")
    kernel = [7 if side is None else min(side, 7) for side in net.shape.as_list()[1:3]]
    return "AvgPool_1a", slim.avg_pool2d(net, kernel, padding="VALID", scope="AvgPool_1a")


@takes(Images(size=224, other_channels=True))
def mobilenet_v1(
    inputs: Any,
    num_classes: int | None = 1000,
    dropout_keep_prob: float = 0.999,
    is_training: bool = True,
    min_depth: int = 8,
    depth_multiplier: float = 1.0,
    conv_defs: ConvDefs | None = None,
    prediction_fn: Callable[..., Any] | None = slim.softmax,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str = "MobilenetV1",
    global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds MobileNet v1: one convolution, 13 depthwise separable ones, logits.

    Args:
      inputs: `[batch, height, width, channels]` float32; designed for 224 x 224, 192 x 192,
        160 x 160 and 128 x 128.
      num_classes: width of the logits; 0 or None returns the features before them.
      dropout_keep_prob: share of the features that dropout keeps.
      is_training: whether dropout is active and batch normalization uses the batch.
      min_depth: the fewest channels of a layer.
      depth_multiplier: scales the number of channels of every layer.
      conv_defs: the layers; None for `MOBILENETV1_CONV_DEFS`.
      prediction_fn: makes `Predictions` from the logits; None for none.
      spatial_squeeze: whether the logits lose height and width, which must be 1.
      reuse: whether the variables exist already.
      scope: variable scope.
      global_pool: averages over the whole feature map, whatever its size. Otherwise over
        7 x 7 pixels with stride 2, or all of a smaller feature map.

    Returns:
      Logits `[batch, num_classes]`, or `[batch, 1, 1, num_classes]` without
      `spatial_squeeze`, or features `[batch, 1, 1, 1024]`; and the end points `Conv2d_0`,
      `Conv2d_<1 to 13>_depthwise` and `_pointwise`, `AvgPool_1a` (`global_pool` where
      that is asked for), and with classes `Logits`, `Predictions`.

    Raises:
      ValueError: if `inputs` has another rank or an unknown channel count, `num_classes` is
        negative, `depth_multiplier` or `min_depth` is not positive, or `spatial_squeeze` cannot be
        done.
    """
    conv_defs = MOBILENETV1_CONV_DEFS if conv_defs is None else conv_defs
    with (
        tf.variable_scope(scope, "MobilenetV1", [inputs], reuse=reuse) as entered,
        slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training),
    ):
        net, end_points = mobilenet_v1_base(
            inputs,
            final_endpoint=_steps(conv_defs, None)[-1].name,
            min_depth=min_depth,
            depth_multiplier=depth_multiplier,
            conv_defs=conv_defs,
            scope=entered,
        )
        with tf.variable_scope("Logits"):
            name, net = _pooled(net, global_pool)
            end_points[name] = net
            if not num_classes:
                return net, end_points
            net = slim.dropout(net, keep_prob=dropout_keep_prob, scope="Dropout_1b")
            logits = slim.conv2d(
                net,
                num_classes,
                [1, 1],
                activation_fn=None,
                normalizer_fn=None,
                scope="Conv2d_1c_1x1",
            )
            if spatial_squeeze:
                logits = squeeze_pixel(logits, [1, 2])
        end_points["Logits"] = logits
        if prediction_fn is not None:
            end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


def mobilenet_v1_arg_scope(
    is_training: bool | None = True,
    weight_decay: float = 0.00004,
    stddev: float = 0.09,
    regularize_depthwise: bool = False,
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    batch_norm_updates_collections: str | None = tf.GraphKeys.UPDATE_OPS,
    normalizer_fn: Callable[..., Any] | None = slim.batch_norm,
) -> Any:
    """Returns the arg scope of `mobilenet_v1`.

    Args:
      is_training: mode of batch normalization in `mobilenet_v1_base` (`mobilenet_v1` sets
        its own); None leaves it alone.
      weight_decay: factor of the L2 losses.
      stddev: of the truncated normal distribution that initializes the weights.
      regularize_depthwise: whether depthwise weights have an L2 loss as well.
      batch_norm_decay: of the moving averages.
      batch_norm_epsilon: added to the variance.
      batch_norm_updates_collections: where the update ops go; None updates in place.
      normalizer_fn: follows each convolution.
    """
    mode = {} if is_training is None else {"is_training": is_training}
    regularizer = slim.l2_regularizer(weight_decay)
    with (
        slim.arg_scope(
            [slim.conv2d, slim.separable_conv2d],
            weights_initializer=tf.truncated_normal_initializer(stddev=stddev),
            activation_fn=tf.nn.relu6,
            normalizer_fn=normalizer_fn,
        ),
        slim.arg_scope(
            [slim.batch_norm],
            center=True,
            scale=True,
            decay=batch_norm_decay,
            epsilon=batch_norm_epsilon,
            updates_collections=batch_norm_updates_collections,
            **mode,
        ),
        slim.arg_scope([slim.conv2d], weights_regularizer=regularizer),
        slim.arg_scope(
            [slim.separable_conv2d],
            weights_regularizer=regularizer if regularize_depthwise else None,
        ) as arg_scope,
    ):
        return arg_scope


mobilenet_v1_075 = wrapped_partial(mobilenet_v1, depth_multiplier=0.75)
mobilenet_v1_050 = wrapped_partial(mobilenet_v1, depth_multiplier=0.5)
mobilenet_v1_025 = wrapped_partial(mobilenet_v1, depth_multiplier=0.25)

NETWORKS = {
    "mobilenet_v1": Network(mobilenet_v1, mobilenet_v1_arg_scope),
    "mobilenet_v1_075": Network(mobilenet_v1_075, mobilenet_v1_arg_scope),
    "mobilenet_v1_050": Network(mobilenet_v1_050, mobilenet_v1_arg_scope),
    "mobilenet_v1_025": Network(mobilenet_v1_025, mobilenet_v1_arg_scope),
}
