"""The inverted residual block.

MobileNetV2: Inverted Residuals and Linear Bottlenecks, Sandler et al. 2018,
https://arxiv.org/abs/1801.04381, figure 3.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet.padding import padded
from nets.mobilenet.splitting import fused_conv, split_conv
from nets.parts.depth import make_divisible
from nets.parts.network import check_choice


@dataclasses.dataclass(frozen=True)
class _ByFactor:
    factor: float
    divisible_by: int

    def __call__(self, num_inputs: int, **_: Any) -> int:
        return make_divisible(num_inputs * self.factor, self.divisible_by)


def expand_input_by_factor(n: float, divisible_by: int = 8) -> Callable[..., int]:
    """Returns a function of `num_inputs`: n times as many, to a multiple of `divisible_by`.

    >>> expand_input_by_factor(6)(num_inputs=20)
    120
    """
    return _ByFactor(n, divisible_by)


_SIX_TIMES = expand_input_by_factor(6)


@slim.add_arg_scope
def expanded_conv(
    input_tensor: Any,
    num_outputs: int,
    expansion_size: int | Callable[..., int] = _SIX_TIMES,
    stride: int = 1,
    rate: int = 1,
    kernel_size: Sequence[int] = (3, 3),
    residual: bool | Callable[..., Any] = True,
    normalizer_fn: Callable[..., Any] | None = None,
    split_projection: int = 1,
    split_expansion: int = 1,
    split_divisible_by: int = 8,
    expansion_transform: Callable[..., Any] | None = None,
    depthwise_location: str | None = "expansion",
    depthwise_channel_multiplier: int = 1,
    endpoints: dict[str, Any] | None = None,
    use_explicit_padding: bool = False,
    padding: str = "SAME",
    inner_activation_fn: Callable[..., Any] | None = None,
    depthwise_activation_fn: Callable[..., Any] | None = None,
    project_activation_fn: Callable[..., Any] | None = tf.identity,
    depthwise_fn: Callable[..., Any] = slim.separable_conv2d,
    expansion_fn: Callable[..., Any] = split_conv,
    projection_fn: Callable[..., Any] = split_conv,
    scope: str | None = None,
) -> Any:
    """Builds a block: a 1x1 convolution that widens, a depthwise one, a 1x1 one to `num_outputs`.

    Args:
      input_tensor: `[batch, height, width, channels]` float32.
      num_outputs: channels of the output.
      expansion_size: channels between the two 1x1 convolutions, or a function of `num_inputs`. The
        first of them is left out unless it widens.
      stride: of the depthwise convolution.
      rate: its dilation.
      kernel_size: its height and width.
      residual: whether the input is added where the output has its shape; or a function of
        `input_tensor` and `output_tensor` that returns the sum.
      normalizer_fn: follows each convolution.
      split_projection: in how many parts the last convolution is done, see `split_conv`.
      split_expansion: the same of the first one.
      split_divisible_by: what the channels of these parts are multiples of.
      expansion_transform: makes of `expansion_tensor` and `input_tensor` what goes into the last
        convolution.
      depthwise_location: where the depthwise convolution is: at the `input`, in the `expansion`,
        at the `output`; None for none.
      depthwise_channel_multiplier: outputs of the depthwise convolution per input.
      endpoints: gets `expansion_output`, `depthwise_output` and `projection_output`, those of
        them that are built.
      use_explicit_padding: pads by the kernel size alone.
      padding: of the depthwise convolution; SAME with `use_explicit_padding`.
      inner_activation_fn: of the first two convolutions; None leaves it to the arg scope.
      depthwise_activation_fn: of the depthwise one alone.
      project_activation_fn: of the last convolution.
      depthwise_fn: builds the depthwise convolution.
      expansion_fn: builds the first one.
      projection_fn: builds the last one.
      scope: variable scope; None for a new one, `expanded_conv`.

    Returns:
      `[batch, height / stride, width / stride, num_outputs]`.

    Raises:
      ValueError: if `depthwise_location` is none of these, or `padding` is not SAME with
        `use_explicit_padding`.
    """
    check_choice("depthwise_location", depthwise_location, [None, "input", "expansion", "output"])
    if use_explicit_padding and padding != "SAME":
        raise ValueError(f"padding must be 'SAME' with use_explicit_padding, got {padding!r}")
    endpoints = {} if endpoints is None else endpoints
    spatial: dict[str, Any] = {"kernel_size": kernel_size, "stride": stride, "rate": rate}
    depthwise: Callable[..., Any] = functools.partial(
        _depthwise,
        depthwise_fn,
        endpoints,
        depth_multiplier=depthwise_channel_multiplier,
        normalizer_fn=normalizer_fn,
        padding=None if use_explicit_padding else padding,
        **spatial,
    )
    split = {"divisible_by": split_divisible_by, "stride": 1}
    fused = {**spatial, "use_explicit_padding": use_explicit_padding}
    expansion_fn = _told(expansion_fn, split_conv, {**split, "num_ways": split_expansion})
    expansion_fn = _told(expansion_fn, fused_conv, fused)
    projection_fn = _told(projection_fn, split_conv, {**split, "num_ways": split_projection})
    with _scopes(scope, inner_activation_fn, depthwise_activation_fn):
        net = input_tensor = tf.identity(input_tensor, "input")
        depth = net.shape.as_list()[3]
        if depthwise_location == "input":
            net = depthwise(net, activation_fn=None)
        size = expansion_size(num_inputs=depth) if callable(expansion_size) else expansion_size
        if size > net.shape.as_list()[3]:
            net = expansion_fn(net, size, scope="expand", normalizer_fn=normalizer_fn)
            net = endpoints["expansion_output"] = tf.identity(net, "expansion_output")
        if depthwise_location == "expansion":
            net = depthwise(net)
        if expansion_transform is not None:
            net = expansion_transform(expansion_tensor=net, input_tensor=input_tensor)
        net = endpoints["projection_output"] = projection_fn(
            net,
            num_outputs,
            scope="project",
            normalizer_fn=normalizer_fn,
            activation_fn=project_activation_fn,
        )
        if depthwise_location == "output":
            net = depthwise(net, activation_fn=None)
        if callable(residual):
            net = residual(input_tensor=input_tensor, output_tensor=net)
        elif residual and stride == 1 and net.shape.as_list()[3] == depth:
            net += input_tensor
        return tf.identity(net, "output")


def _told(
    function: Callable[..., Any], own: Callable[..., Any], keywords: dict[str, Any]
) -> Callable[..., Any]:
    """Returns a way to convolve; `own` with what it needs to know of the block."""
    return functools.partial(own, **keywords) if function is own else function


@contextlib.contextmanager
def _scopes(
    scope: str | None,
    inner_activation_fn: Callable[..., Any] | None,
    depthwise_activation_fn: Callable[..., Any] | None,
) -> Iterator[None]:
    """Enters the variable scope of a block, ops under its name, and sets the activations."""
    inner = {} if inner_activation_fn is None else {"activation_fn": inner_activation_fn}
    own = {} if depthwise_activation_fn is None else {"activation_fn": depthwise_activation_fn}
    with (
        tf.variable_scope(scope, "expanded_conv") as entered,
        tf.name_scope(entered.original_name_scope),
        slim.arg_scope([slim.conv2d], **inner),
        slim.arg_scope([slim.separable_conv2d], **{**inner, **own}),
    ):
        yield


def _depthwise(
    function: Callable[..., Any],
    endpoints: dict[str, Any],
    net: Any,
    kernel_size: Sequence[int],
    rate: int,
    padding: str | None,
    **keywords: Any,
) -> Any:
    """Builds a depthwise convolution, padded by hand if `padding` is None."""
    if padding is None:
        net, padding = padded(net, kernel_size, rate, use_explicit_padding=True)
    net = function(
        net,
        num_outputs=None,
        kernel_size=kernel_size,
        rate=rate,
        padding=padding,
        scope="depthwise",
        **keywords,
    )
    net = endpoints["depthwise_output"] = tf.identity(net, "depthwise_output")
    return net
