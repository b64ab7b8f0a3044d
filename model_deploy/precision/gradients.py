"""Gradients of ops in 16 bits whose own ones are slow."""

from typing import Any

import tensorflow.compat.v1 as tf

# By this name the graph finds the gradient of an op that has it as its `_gradient_op_type`.
_DEPTHWISE = "model_deploy/DepthwiseConv2dNativeIn16Bits"
# By type of op, for `tf.Graph.gradient_override_map`.
GRADIENTS = {"DepthwiseConv2dNative": _DEPTHWISE}
_SETTINGS = ("strides", "padding", "explicit_paddings", "data_format", "dilations")


@tf.RegisterGradient(_DEPTHWISE)
def depthwise_gradient(op: Any, gradient: Any) -> tuple[Any, Any]:
    """The gradient of a depthwise convolution in 16 bits; on a CPU computed in 32.

    TensorFlow's kernels for CPUs take nine times as long for that of the input in bfloat16 as in
    float32.

    Args:
      op: the convolution.
      gradient: of its output, of the same shape and type.

    Returns:
      Gradients of the input and of the filter, of their shapes and types.
    """
    tensors = [op.inputs[0], op.inputs[1], gradient]
    if "GPU" not in op.device.upper():
        tensors = [tf.cast(tensor, tf.float32) for tensor in tensors]
    images, filters, gradient = tensors
    settings = {name: op.get_attr(name) for name in _SETTINGS}
    of_images = tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
        input_sizes=tf.shape(images), filter=filters, out_backprop=gradient, **settings
    )
    of_filters = tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
        input=images, filter_sizes=tf.shape(filters), out_backprop=gradient, **settings
    )
    return tf.cast(of_images, op.inputs[0].dtype), tf.cast(of_filters, op.inputs[1].dtype)
