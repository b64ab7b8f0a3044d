"""What I3D and S3D-G are made of: convolutions over space and time, and a block of them.

Quo Vadis, Action Recognition? A New Model and the Kinetics Dataset, Carreira and
Zisserman 2017, https://arxiv.org/abs/1705.07750, figure 3; and Rethinking Spatiotemporal
Feature Learning, Xie et al. 2018, https://arxiv.org/abs/1712.04851.

Video is `[batch, frames, height, width, channels]` (NDHWC) unless said otherwise.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.branches import Layer, branches, chain, in_scope
from nets.parts.kernels import fitting

# Names that TF-Slim's module has, too.
layers = slim
add_arg_scope = slim.add_arg_scope


def center_initializer() -> Callable[..., Any]:
    """Returns an initializer with which a convolution along time changes nothing.

    It makes weights `[frames, 1, 1, channels in, channels out]` that take each channel of the
    frame in the middle, and raises ValueError for another shape or a type that is no float.
    """

    def initialize(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> Any:
        del partition_info  # asked for by TensorFlow's calling convention
        sizes = tf.TensorShape(shape).as_list()
        if len(sizes) != 5 or sizes[1:3] != [1, 1]:
            raise ValueError(f"shape must be [frames, 1, 1, channels, channels], got {sizes}")
        if not tf.as_dtype(dtype).is_floating:
            raise ValueError(f"dtype must be a floating point type, got {dtype}")
        taps = np.zeros(sizes)
        taps[len(taps) // 2, 0, 0] = np.eye(*sizes[3:])
        return tf.constant(taps, dtype)

    return initialize


@add_arg_scope
def conv3d_spatiotemporal(
    inputs: Any,
    num_outputs: int,
    kernel_size: Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: str = "SAME",
    activation_fn: Callable[..., Any] | None = None,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_regularizer: Callable[..., Any] | None = None,
    separable: bool = False,
    data_format: str = "NDHWC",
    scope: str = "",
) -> Any:
    """Convolves video in space and time at once, or one after the other if `separable`.

    The convolution along time has biases, no normalization, and starts as the identity.

    Args:
      inputs: `[batch, frames, height, width, channels]` float32.
      num_outputs: channels of the result.
      kernel_size: over [frames, height, width].
      stride: along all three, or one for each.
      padding: `SAME` or `VALID`.
      activation_fn: after each convolution; None for none.
      normalizer_fn: of the convolution over space, or over both; None for biases.
      normalizer_params: arguments of `normalizer_fn`.
      weights_regularizer: of all weights.
      separable: whether to split a kernel over more than one frame.
      data_format: NDHWC, or NCDHW if `inputs` and result are in that order.
      scope: variable scope; the convolution along time is `temporal` inside.

    Returns:
      `[batch, frames / stride, height / stride, width / stride, num_outputs]`.

    Raises:
      ValueError: if `kernel_size` or a list of strides has not three numbers.
    """
    kernel_size, strides = _three("kernel_size", kernel_size), _three("stride", stride)
    shared: dict[str, Any] = {
        "padding": padding,
        "activation_fn": activation_fn,
        "weights_regularizer": weights_regularizer,
        "data_format": data_format,
    }
    normalized = {"normalizer_fn": normalizer_fn, "normalizer_params": normalizer_params, **shared}
    frames, *sides = kernel_size
    if not separable or frames == 1:
        return layers.conv3d(
            inputs, num_outputs, kernel_size, stride=strides, scope=scope, **normalized
        )
    net = layers.conv3d(
        inputs, num_outputs, [1, *sides], stride=[1, *strides[1:]], scope=scope, **normalized
    )
    return layers.conv3d(
        net,
        num_outputs,
        [frames, 1, 1],
        stride=[strides[0], 1, 1],
        normalizer_fn=None,
        weights_initializer=center_initializer(),
        scope=f"{scope}/temporal",
        **shared,
    )


def _three(name: str, value: int | Sequence[int]) -> list[int]:
    """Returns a number for each of frames, height and width."""
    numbers = [value] * 3 if isinstance(value, int) else list(value)
    if len(numbers) != 3:
        raise ValueError(f"{name} must have three numbers, got {value!r}")
    return numbers


def inception_block_v1_3d(
    inputs: Any,
    num_outputs_0_0a: int,
    num_outputs_1_0a: int,
    num_outputs_1_0b: int,
    num_outputs_2_0a: int,
    num_outputs_2_0b: int,
    num_outputs_3_0b: int,
    temporal_kernel_size: int = 3,
    self_gating_fn: Callable[..., Any] | None = None,
    data_format: str = "NDHWC",
    scope: str = "",
) -> Any:
    """Builds an Inception v1 block over video; a number `i_0a` or `i_0b` is a width in branch `i`.

    Args:
      inputs: `[batch, frames, height, width, channels]` float32.
      num_outputs_0_0a: of the only 1x1 convolution.
      num_outputs_1_0a: of the 1x1 before the convolution over space and time.
      num_outputs_1_0b: of that convolution.
      num_outputs_2_0a: of the 1x1 before the convolution over space and time.
      num_outputs_2_0b: of that convolution.
      num_outputs_3_0b: of the 1x1 after the max pool.
      temporal_kernel_size: frames that the convolutions over space and time look at.
      self_gating_fn: `self_gating_fn(net, scope=...)` gates the end of each branch; None for none.
      data_format: NDHWC, or NCDHW if `inputs` and result are in that order.
      scope: variable scope.

    Returns:
      `[batch, frames, height, width, the last widths of all branches]`.
    """

    def pointwise(width: int, name: str) -> Layer:
        return lambda net: layers.conv3d(net, width, [1, 1, 1], data_format=data_format, scope=name)

    def over_time(width: int) -> Layer:
        kernel = [temporal_kernel_size, 3, 3]
        return lambda net: conv3d_spatiotemporal(
            net, width, kernel, data_format=data_format, scope="Conv2d_0b_3x3"
        )

    def pool(net: Any) -> Any:
        return layers.max_pool3d(
            net,
            [3, 3, 3],
            stride=1,
            padding="SAME",
            data_format=data_format,
            scope="MaxPool_0a_3x3",
        )

    def gate(name: str) -> Layer:
        return lambda net: self_gating_fn(net, scope=name) if self_gating_fn else net

    reduced, single, last = "Conv2d_0a_1x1", "Conv2d_0b_3x3", "Conv2d_0b_1x1"
    block = branches(
        chain(pointwise(num_outputs_0_0a, reduced), gate(reduced)),
        chain(pointwise(num_outputs_1_0a, reduced), over_time(num_outputs_1_0b), gate(single)),
        chain(pointwise(num_outputs_2_0a, reduced), over_time(num_outputs_2_0b), gate(single)),
        chain(pool, pointwise(num_outputs_3_0b, last), gate(last)),
        axis=data_format.index("C"),
    )
    return in_scope(scope, block)(inputs)


def reduced_kernel_size_3d(input_tensor: Any, kernel_size: Sequence[int]) -> list[int]:
    """Returns the kernel, cut down to the video's size where that is known and smaller.

    Args:
      input_tensor: `[batch, frames, height, width, channels]`.
      kernel_size: over [frames, height, width].

    Returns:
      A kernel that fits, or `kernel_size` if frames, height or width are unknown.

    Raises:
      ValueError: if the tensor has not rank 5, or `kernel_size` has not three numbers.
    """
    kernel_size = _three("kernel_size", kernel_size)
    if input_tensor.shape.rank != 5:
        raise ValueError(f"input_tensor must have rank 5, got shape {input_tensor.shape}")
    sizes = input_tensor.shape.as_list()[1:4]
    return kernel_size if None in sizes else fitting(kernel_size, sizes)


def video_arg_scope(
    weight_decay: float,
    batch_norm_decay: float,
    batch_norm_epsilon: float,
    separable: bool,
    use_renorm: bool = False,
) -> Any:
    """Returns the arg scope of I3D and S3D-G; the arguments are those of `i3d_arg_scope`."""
    normalization = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "fused": False,
        "renorm": use_renorm,
        "variables_collections": {
            "beta": None,
            "gamma": None,
            "moving_mean": ["moving_vars"],
            "moving_variance": ["moving_vars"],
        },
    }
    with (
        slim.arg_scope(
            [slim.conv3d, conv3d_spatiotemporal],
            weights_regularizer=slim.l2_regularizer(weight_decay),
            activation_fn=tf.nn.relu,
            normalizer_fn=slim.batch_norm,
            normalizer_params=normalization,
        ),
        slim.arg_scope([conv3d_spatiotemporal], separable=separable) as scope,
    ):
        return scope
