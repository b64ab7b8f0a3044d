"""What MobileNet v2 and v3 share: layers from their definitions, the head, the arg scope.

MobileNetV2: Inverted Residuals and Linear Bottlenecks, Sandler et al. 2018,
https://arxiv.org/abs/1801.04381.

A network is a dict, its `conv_defs`, that programs may copy and change:
  spec: a list of `op(function, **params)`, the layers.
  defaults: functions -> their keywords in this network, as of `slim.arg_scope`.
  overrides: the same; comes after `defaults`.
"""

import contextlib
import inspect
import math
import numbers
import posixpath
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet.definitions import (
    ConvDefs,
    NoOpScope,
    Op,
    apply_activation,
    depth_multiplier,
    op,
    safe_arg_scope,
)
from nets.mobilenet.dilation import strides_and_rates
from nets.mobilenet.padding import fixed_padding
from nets.parts.network import Images, check_choice, takes

__all__ = [
    "NoOpScope",
    "Op",
    "apply_activation",
    "depth_multiplier",
    "global_pool",
    "image_network",
    "mobilenet",
    "mobilenet_base",
    "op",
    "safe_arg_scope",
    "training_scope",
]

Function = TypeVar("Function", bound=Callable[..., Any])


@slim.add_arg_scope
def mobilenet_base(
    inputs: Any,
    conv_defs: ConvDefs,
    multiplier: float = 1.0,
    final_endpoint: str | None = None,
    output_stride: int | None = None,
    use_explicit_padding: bool = False,
    scope: Any = None,
    is_training: bool | None = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds the layers of `conv_defs`.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      conv_defs: the layers, see above.
      multiplier: scales the layers, each by its `multiplier_func`; with 0 each gets the fewest
        channels that it may have.
      final_endpoint: the last layer to build, `layer_<number>` from 1; None for all.
      output_stride: input size / output size of the layers; strides after it is reached
        become dilation. A power of two up to the network's own stride, or None for that.
      use_explicit_padding: pads by the kernel size alone, where SAME padding
        depends on the input size too.
      scope: variable scope.
      is_training: whether batch normalization uses the batch; None leaves it to the arg scope.

    Returns:
      The last layer's output `[batch, height / stride, width / stride, depth]`; and the end
      points: `layer_<number>`, and all ops directly in the scope of a layer whose names end in
      `output`, as `layer_<number>/expansion_output`.

    Raises:
      ValueError: if `multiplier`, `final_endpoint` or `output_stride` cannot be met.
    """
    _check_layers(conv_defs, multiplier, final_endpoint, output_stride)
    padding: dict[Any, Any] = {}
    if use_explicit_padding:
        padding = {(slim.conv2d, slim.separable_conv2d): {"padding": "VALID"}}
    layers = _scaled(conv_defs["spec"], multiplier)
    strides = [params.get("stride", 1) for _, params in layers]
    spatials = strides_and_rates(strides, output_stride)
    net, end_points = inputs, {}
    with (
        tf.variable_scope(scope, "Mobilenet") as entered,
        tf.name_scope(entered.original_name_scope),
        safe_arg_scope([slim.batch_norm], is_training=is_training),
        _arg_scopes(conv_defs.get("defaults", {})),
        _arg_scopes({**conv_defs.get("overrides", {}), **padding}),
    ):
        for number, ((function, params), spatial) in enumerate(
            zip(layers, spatials, strict=True), 1
        ):
            net = _layer(net, function, params, spatial, use_explicit_padding)
            end_points[f"layer_{number}"] = net
            if f"layer_{number}" == final_endpoint:
                break
    return net, {**end_points, **_outputs_inside(end_points)}


def _check_layers(
    conv_defs: ConvDefs,
    multiplier: float = 1.0,
    final_endpoint: str | None = None,
    output_stride: int | None = None,
    **_: Any,
) -> None:
    """Raises ValueError if these layers cannot be built so."""
    if not (isinstance(multiplier, numbers.Real) and 0 <= float(multiplier) < math.inf):
        raise ValueError(f"depth_multiplier must be a number of at least 0, got {multiplier!r}")
    names = [f"layer_{number}" for number in range(1, len(conv_defs["spec"]) + 1)]
    check_choice("final_endpoint", final_endpoint, [None, *names])
    strides_and_rates([layer.params.get("stride", 1) for layer in conv_defs["spec"]], output_stride)


def _scaled(spec: list[Op], multiplier: float) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
    """Returns the function of each layer and its keywords, multiplied."""
    layers = []
    for layer in spec:
        params = dict(layer.params)
        layer.multiplier_func(params, multiplier)
        layers.append((layer.op, params))
    return layers


@contextlib.contextmanager
def _arg_scopes(settings: dict[Any, dict[str, Any]]) -> Iterator[None]:
    """Enters an arg scope for each item, functions -> keywords."""
    with contextlib.ExitStack() as stack:
        for functions, keywords in settings.items():
            stack.enter_context(slim.arg_scope(functions, **keywords))
        yield


def _layer(
    net: Any,
    function: Callable[..., Any],
    params: dict[str, Any],
    spatial: tuple[int, int],
    use_explicit_padding: bool,
) -> Any:
    """Builds one layer with this stride and dilation rate."""
    stride, rate = spatial
    kernel_size = params.get("kernel_size")
    params = {**params, "stride": stride}
    # A 1x1 kernel has nothing to dilate.
    if rate > 1 and (kernel_size is None or _pair(kernel_size) != (1, 1)):
        params["rate"] = rate
    if use_explicit_padding:
        pads = "use_explicit_padding" in inspect.signature(function).parameters
        if pads or kernel_size is None:
            params["use_explicit_padding"] = True
        else:
            net = fixed_padding(net, _pair(kernel_size), rate)
    return function(net, **params)


def _pair(kernel_size: Any) -> tuple[int, ...]:
    """Returns height and width of a kernel that may be given as one number."""
    return tuple(kernel_size) if isinstance(kernel_size, Sequence) else (kernel_size,) * 2


def _outputs_inside(layers: dict[str, Any]) -> dict[str, Any]:
    """Returns what the ops in the scopes of layers give whose names end in `output`."""
    if not layers:
        return {}
    by_scope = {posixpath.dirname(net.name): name for name, net in layers.items()}
    found = {}
    for operation in next(iter(layers.values())).graph.get_operations():
        scope, _, name = operation.name.rpartition("/")
        if scope in by_scope and name.endswith("output"):
            found[f"{by_scope[scope]}/{name}"] = operation.outputs[0]
    return found


@slim.add_arg_scope
def mobilenet(
    inputs: Any,
    num_classes: int | None = 1001,
    prediction_fn: Callable[..., Any] | None = slim.softmax,
    reuse: bool | None = None,
    scope: Any = "Mobilenet",
    base_only: bool = False,
    use_reduce_mean_for_pooling: bool = False,
    **mobilenet_args: Any,
) -> tuple[Any, dict[str, Any]]:
    """Builds the layers of `mobilenet_base`, the pooling and the logits.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      num_classes: width of the logits; 0 or None returns the features before them.
      prediction_fn: makes `Predictions` of (logits, name); None for none.
      reuse: whether the variables exist already.
      scope: variable scope.
      base_only: leaves out pooling and logits.
      use_reduce_mean_for_pooling: a `reduce_mean` instead of an average pooling op.
      **mobilenet_args: go to `mobilenet_base`, `conv_defs` at least; `is_training` (False) is
        for dropout as well.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 1, 1, depth]`, or with `base_only`
      the last layer's output `[batch, height / stride, width / stride, depth]`. And the end
      points of `mobilenet_base`, `global_pool`, and with classes `Logits`, `Predictions`.

    Raises:
      ValueError: if `inputs` is of another rank, or as `mobilenet_base`.
    """
    if inputs.shape.rank != 4:
        raise ValueError(f"inputs must have rank 4, got shape {inputs.shape}")
    if "conv_defs" in mobilenet_args:
        _check_layers(**mobilenet_args)  # before anything is built
    with tf.variable_scope(scope, "Mobilenet", reuse=reuse) as entered:
        inputs = tf.identity(inputs, "input")
        net, end_points = mobilenet_base(inputs, scope=entered, **mobilenet_args)
        if base_only:
            return net, end_points
        net = tf.identity(net, "embedding")
        with tf.variable_scope("Logits"):
            net = end_points["global_pool"] = global_pool(net, use_reduce_mean_for_pooling)
            if not num_classes:
                return net, end_points
            with safe_arg_scope(
                [slim.dropout], is_training=mobilenet_args.get("is_training", False)
            ):
                logits = end_points["Logits"] = _logits(net, num_classes)
        if prediction_fn is not None:
            end_points["Predictions"] = prediction_fn(logits, "Predictions")
    return logits, end_points


def _logits(net: Any, num_classes: int) -> Any:
    """Turns pooled features `[batch, 1, 1, depth]` into logits `[batch, num_classes]`."""
    net = slim.dropout(net, scope="Dropout")
    net = slim.conv2d(
        net,
        num_classes,
        [1, 1],
        activation_fn=None,
        normalizer_fn=None,
        biases_initializer=tf.zeros_initializer(),
        scope="Conv2d_1c_1x1",
    )
    return tf.identity(tf.squeeze(net, [1, 2]), name="output")


def global_pool(
    input_tensor: Any,
    use_reduce_mean_for_pooling: bool = False,
    pool_op: Callable[..., Any] = tf.nn.avg_pool2d,
) -> Any:
    """Pools `[batch, height, width, channels]` to `[batch, 1, 1, channels]`.

    Args:
      input_tensor: float32 feature maps.
      use_reduce_mean_for_pooling: a `reduce_mean` instead of `pool_op`.
      pool_op: called as `tf.nn.avg_pool2d`. Average pooling takes no height or width that is
        unknown until the graph runs: there it is a `reduce_mean`, too.
    """
    sides = input_tensor.shape.as_list()[1:3]
    unknown = None in sides
    if use_reduce_mean_for_pooling or (unknown and pool_op is tf.nn.avg_pool2d):
        return tf.reduce_mean(input_tensor, [1, 2], keepdims=True, name="ReduceMean")
    kernel: Any = [1, *sides, 1]
    if unknown:
        shape = tf.shape(input_tensor)
        kernel = tf.stack([1, shape[1], shape[2], 1])
    output = pool_op(input_tensor, ksize=kernel, strides=[1, 1, 1, 1], padding="VALID")
    output.set_shape([None, 1, 1, None])  # which the op cannot know of an unknown kernel
    return output


def image_network(function: Function) -> Function:
    """Makes a function a network of images that `slim.arg_scope` can set keywords of."""
    network = takes(Images(size=224, other_channels=True))(slim.add_arg_scope(function))
    # Slim keeps the signature in an attribute, which a `wrapped_partial` would keep unchanged.
    del network.__signature__
    return network


def training_scope(
    is_training: bool | None = True,
    weight_decay: float = 0.00004,
    stddev: float = 0.09,
    dropout_keep_prob: float | None = 0.8,
    bn_decay: float | None = 0.997,
) -> Any:
    """Returns the arg scope of MobileNet v2 and v3.

    Args:
      is_training: mode of a network that is not told its own; None leaves that to the arg
        scopes of `slim.batch_norm` and `slim.dropout`.
      weight_decay: L2 regularization of convolutions; depthwise ones get none.
      stddev: of the truncated normal distribution that initializes the weights; below 0 they
        start as Glorot and Bengio's.
      dropout_keep_prob: fraction kept by dropout in front of the logits.
      bn_decay: of the moving averages in batch normalization.
    """
    if stddev < 0:
        initializer = slim.xavier_initializer()
    else:
        initializer = tf.truncated_normal_initializer(stddev=stddev)
    with (
        slim.arg_scope(
            [slim.conv2d, slim.fully_connected, slim.separable_conv2d],
            weights_initializer=initializer,
            normalizer_fn=slim.batch_norm,
        ),
        slim.arg_scope([mobilenet_base, mobilenet], is_training=is_training),
        safe_arg_scope([slim.batch_norm], is_training=is_training, decay=bn_decay),
        safe_arg_scope([slim.dropout], is_training=is_training, keep_prob=dropout_keep_prob),
        slim.arg_scope([slim.conv2d], weights_regularizer=slim.l2_regularizer(weight_decay)),
        slim.arg_scope([slim.separable_conv2d], weights_regularizer=None) as arg_scope,
    ):
        return arg_scope
