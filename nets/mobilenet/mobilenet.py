"""What MobileNet v2 and v3 share: the stack of layers, the head, the arg scope.

MobileNetV2: Inverted Residuals and Linear Bottlenecks, Sandler et al. 2018,
https://arxiv.org/abs/1801.04381.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet.conv_blocks import Place, build_layer, pool_to_pixel
from nets.mobilenet.definitions import Conv, ConvDefs, ExpandedConv, Layer, strides_and_rates
from nets.parts.network import Images, check_choice, takes

Function = TypeVar("Function", bound=Callable[..., Any])


def _layer_scopes(layers: tuple[Layer, ...]) -> list[str]:
    """Names each layer by its kind and its count among that kind: Conv, Conv_1, ..."""
    kinds = {Conv: "Conv", ExpandedConv: "expanded_conv"}
    names: list[str] = []
    for position, layer in enumerate(layers):
        kind = kinds.get(type(layer), "AvgPool2D")
        count = sum(type(earlier) is type(layer) for earlier in layers[:position])
        names.append(f"{kind}_{count}" if count else kind)
    return names


def _layer_arg_scope(conv_defs: ConvDefs, is_training: bool | None) -> Any:
    """Returns the arg scope that a network brings along, around or inside `training_scope`."""
    with slim.arg_scope(
        [slim.conv2d, slim.separable_conv2d],
        normalizer_fn=conv_defs.normalizer_fn,
        normalizer_params=conv_defs.normalizer_params,
        activation_fn=conv_defs.activation_fn,
    ):
        mode = {} if is_training is None else {"is_training": is_training}
        with slim.arg_scope([slim.batch_norm, slim.dropout], **mode) as arg_scope:
            return arg_scope


def _places(
    conv_defs: ConvDefs,
    final_endpoint: str | None,
    output_stride: int | None,
    use_explicit_padding: bool,
) -> dict[str, tuple[Layer, Place]]:
    """Returns, by end point, the layers up to `final_endpoint` and how to build each."""
    layers = conv_defs.layers
    names = [f"layer_{number}" for number in range(1, len(layers) + 1)]
    check_choice("final_endpoint", final_endpoint, [None, *names])
    spatials = strides_and_rates([layer.stride for layer in layers], output_stride)
    places = {
        name: (layer, Place(scope, *spatial, use_explicit_padding))
        for name, layer, scope, spatial in zip(
            names, layers, _layer_scopes(layers), spatials, strict=True
        )
    }
    count = len(names) if final_endpoint is None else names.index(final_endpoint) + 1
    return {name: places[name] for name in names[:count]}


@slim.add_arg_scope
def mobilenet(
    inputs: Any,
    conv_defs: ConvDefs,
    num_classes: int | None = 1001,
    scope: Any = None,
    prediction_fn: Callable[..., Any] | None = slim.softmax,
    reuse: bool | None = None,
    base_only: bool = False,
    use_reduce_mean_for_pooling: bool = False,
    final_endpoint: str | None = None,
    output_stride: int | None = None,
    use_explicit_padding: bool = False,
    is_training: bool | None = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds the layers of `conv_defs`, the pooling and the logits.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      conv_defs: the layers.
      num_classes: width of the logits; 0 or None returns the features before them.
      scope: variable scope.
      prediction_fn: makes `Predictions` of (logits, name); None for none.
      reuse: whether the variables exist already.
      base_only: leaves out pooling and logits.
      use_reduce_mean_for_pooling: a `reduce_mean` instead of an average pooling op.
      final_endpoint: the last layer to build, `layer_<number>` from 1; None for all.
      output_stride: input size / output size of the layers; strides after it is reached
        become dilation. A power of two up to the network's own stride, or None for that.
      use_explicit_padding: pads by the kernel size alone, where SAME padding
        depends on the input size too.
      is_training: whether dropout is active and batch normalization uses the batch; None
        leaves it to the arg scope.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 1, 1, depth]`, or with `base_only`
      the last layer's output `[batch, height / stride, width / stride, depth]`. And the end
      points: `layer_<number>`; `layer_<number>/output`, `layer_<number>/expansion_output`
      and `layer_<number>/depthwise_output` of the inverted residual blocks; `global_pool`,
      and with classes `Logits`, `Predictions`.

    Raises:
      ValueError: if `final_endpoint` or `output_stride` cannot be met.
    """
    places = _places(conv_defs, final_endpoint, output_stride, use_explicit_padding)
    with (
        tf.variable_scope(scope, "Mobilenet", reuse=reuse),
        slim.arg_scope(_layer_arg_scope(conv_defs, is_training)),
    ):
        net, end_points = _build_layers(tf.identity(inputs, "input"), places)
        if base_only:
            return net, end_points
        net = tf.identity(net, "embedding")
        with tf.variable_scope("Logits"):
            net = end_points["global_pool"] = pool_to_pixel(net, use_reduce_mean_for_pooling)
            if not num_classes:
                return net, end_points
            logits = end_points["Logits"] = _logits(net, num_classes)
        if prediction_fn is not None:
            end_points["Predictions"] = prediction_fn(logits, "Predictions")
    return logits, end_points


def _build_layers(net: Any, places: dict[str, tuple[Layer, Place]]) -> tuple[Any, dict[str, Any]]:
    """Builds the layers on `net`; the end points inside of layers come after all others."""
    end_points, inner_end_points = {}, {}
    for name, (layer, place) in places.items():
        net, inner = build_layer(net, layer, place)
        end_points[name] = net
        inner_end_points.update({f"{name}/{key}": inner[key] for key in inner})
    return net, {**end_points, **inner_end_points}


def image_network(function: Function) -> Function:
    """Makes a function a network of images that `slim.arg_scope` can set keywords of."""
    network = takes(Images(size=224))(slim.add_arg_scope(function))
    # Slim keeps the signature in an attribute, which a `preset` would take over unchanged.
    del network.__signature__
    return network


def _logits(net: Any, num_classes: int) -> Any:
    """Turns pooled features `[batch, 1, 1, depth]` into logits `[batch, num_classes]`."""
    net = slim.dropout(net, scope="Dropout")
    net = slim.conv2d(
        net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="Conv2d_1c_1x1"
    )
    return tf.identity(tf.squeeze(net, [1, 2]), name="output")


def training_scope(
    is_training: bool | None = True,
    weight_decay: float = 0.00004,
    stddev: float = 0.09,
    dropout_keep_prob: float | None = 0.8,
    bn_decay: float | None = 0.997,
) -> Any:
    """Returns the arg scope of MobileNet v2 and v3.

    Args:
      is_training: mode of a network that is not told its own; None leaves it alone.
      weight_decay: L2 regularization of convolutions; depthwise ones get none.
      stddev: of the truncated normal distribution that initializes the weights.
      dropout_keep_prob: fraction kept by dropout in front of the logits.
      bn_decay: of the moving averages in batch normalization.
    """
    initializer = tf.truncated_normal_initializer(stddev=stddev)
    mode = {} if is_training is None else {"is_training": is_training}
    decay = {} if bn_decay is None else {"decay": bn_decay}
    keep = {} if dropout_keep_prob is None else {"keep_prob": dropout_keep_prob}
    with (
        slim.arg_scope(
            [slim.conv2d, slim.fully_connected, slim.separable_conv2d],
            weights_initializer=initializer,
            normalizer_fn=slim.batch_norm,
        ),
        slim.arg_scope([mobilenet], **mode),
        slim.arg_scope([slim.batch_norm], **mode, **decay),
        slim.arg_scope([slim.dropout], **mode, **keep),
        slim.arg_scope([slim.conv2d], weights_regularizer=slim.l2_regularizer(weight_decay)),
        slim.arg_scope([slim.separable_conv2d], weights_regularizer=None) as arg_scope,
    ):
        return arg_scope
