"""S3D-G: Inception v1 with kernels separable in space and time, and self gating, for video.

Rethinking Spatiotemporal Feature Learning: Speed-Accuracy Trade-offs in Video
Classification, Xie et al. 2018, https://arxiv.org/abs/1712.04851.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import i3d_utils
from nets.parts.depth import check_depths, scaled
from nets.parts.initializers import trunc_normal
from nets.parts.network import Network, takes
from nets.parts.video_blocks import InceptionV1Video
from nets.parts.video_head import Video, add_logits

# Names that TF-Slim's module has, too.
arg_scope = slim.arg_scope
conv3d_spatiotemporal = i3d_utils.conv3d_spatiotemporal
inception_block_v1_3d = i3d_utils.inception_block_v1_3d


def self_gating(input_tensor: Any, scope: str, data_format: str = "NDHWC") -> Any:
    """Scales channels by a gate computed from their averages (Xie et al., section 4.3).

    Args:
      input_tensor: `[batch, frames, height, width, channels]` float32.
      scope: variable scope; the gate's is `self_gating` inside.
      data_format: NDHWC, or NCDHW if `input_tensor` is in that order.

    Returns:
      The same shape, each channel of each video times a number between 0 and 1.
    """
    axes = [data_format.index(letter) for letter in "DHW"]
    gate = slim.conv3d(
        tf.reduce_mean(input_tensor, axes, keepdims=True),
        input_tensor.shape.as_list()[data_format.index("C")],
        [1, 1, 1],
        activation_fn=tf.nn.sigmoid,
        normalizer_fn=None,
        biases_initializer=None,
        weights_initializer=trunc_normal(0.01),
        data_format=data_format,
        scope=f"{scope}/self_gating/transformer_W",
    )
    return tf.multiply(gate, input_tensor)


def s3dg_base(
    inputs: Any,
    first_temporal_kernel_size: int = 3,
    temporal_conv_startat: str | None = "Conv2d_2c_3x3",
    gating_startat: str | None = "Conv2d_2c_3x3",
    final_endpoint: str = "Mixed_5c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    data_format: str = "NDHWC",
    scope: Any = "InceptionV1",
) -> tuple[Any, dict[str, Any]]:
    """Builds the layers of S3D-G up to `final_endpoint`.

    The arguments are those of `s3dg`.

    Returns:
      The last layer's output (of `Mixed_5c` `[batch, frames / 8, height / 32, width / 32,
      1024]`), and the end points in order.

    Raises:
      ValueError: if an argument has a value that `s3dg` does not name.
    """
    check_depths(depth_multiplier, min_depth)
    network = InceptionV1Video(
        first_temporal_kernel_size,
        # Split in two, the first convolution would be slow.
        first_settings={"separable": False},
        temporal_conv_startat=temporal_conv_startat,
        gating_fn=functools.partial(self_gating, data_format=data_format),
        gating_startat=gating_startat,
        depth=lambda width: scaled(width, depth_multiplier, min_depth),
        data_format=data_format,
    )
    with tf.variable_scope(scope, "InceptionV1", [inputs]):
        return network.base(inputs, final_endpoint)


@takes(Video(size=224))
def s3dg(
    inputs: Any,
    num_classes: int | None = 1000,
    first_temporal_kernel_size: int = 3,
    temporal_conv_startat: str | None = "Conv2d_2c_3x3",
    gating_startat: str | None = "Conv2d_2c_3x3",
    final_endpoint: str = "Mixed_5c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    dropout_keep_prob: float = 0.8,
    is_training: bool = True,
    prediction_fn: Callable[..., Any] | None = slim.softmax,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    data_format: str = "NDHWC",
    scope: Any = "InceptionV1",
) -> tuple[Any, dict[str, Any]]:
    """Builds S3D-G.

    Args:
      inputs: `[batch, frames, height, width, channels]` float32, of 3 channels (1 for
        grey, 2 for optical flow, or any other number); designed for 64 frames of 224 x 224.
      num_classes: width of the logits; 0 or None returns the features before them.
      first_temporal_kernel_size: frames that the first convolution looks at: 1, 3, 5 or 7.
      temporal_conv_startat: the first layer that looks along time, `Conv2d_2c_3x3` or a
        `Mixed_...`; those before it are convolutions of single frames. None for no layer.
      gating_startat: the first layer with self gating, of the same names. None for no layer.
      final_endpoint: the last layer before the logits, one of the end points.
      min_depth: the fewest channels of a layer.
      depth_multiplier: scales the number of channels of every layer.
      dropout_keep_prob: share of the features that dropout keeps.
      is_training: whether dropout is active and batch normalization uses the batch.
      prediction_fn: makes `Predictions` from the logits; None for none.
      spatial_squeeze: whether the logits lose height and width, which must be 1: frames
        of at most 224 x 224 with the default `final_endpoint`.
      reuse: whether the variables exist already.
      data_format: `NDHWC`, or `NCDHW` with inputs `[batch, channels, frames, height, width]`;
        features and end points are in the same order.
      scope: variable scope.

    Returns:
      Logits `[batch, num_classes]`, averaged over time, or `[batch, 1, 1, num_classes]`
      without `spatial_squeeze`, or features `[batch, frames / 8 - 1, 1, 1, 1024]`; and the
      end points `Conv2d_1a_7x7`, `MaxPool_2a_3x3`, `Conv2d_2b_1x1`, `Conv2d_2c_3x3`,
      `MaxPool_3a_3x3`, `Mixed_3b`, `Mixed_3c`, `MaxPool_4a_3x3`, `Mixed_4b` to `Mixed_4f`,
      `MaxPool_5a_2x2`, `Mixed_5b`, `Mixed_5c`, and with classes `Logits`, `Predictions`.

    Raises:
      ValueError: if `inputs` has another rank or unknown channels, `num_classes` is negative,
        `depth_multiplier` or `min_depth` is not positive, `spatial_squeeze` cannot be done, or
        an argument has a value that is not named above.
    """
    with (
        tf.variable_scope(scope, "InceptionV1", [inputs], reuse=reuse) as entered,
        slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training),
    ):
        net, end_points = s3dg_base(
            inputs,
            first_temporal_kernel_size,
            temporal_conv_startat,
            gating_startat,
            final_endpoint,
            min_depth,
            depth_multiplier,
            data_format,
            scope=entered,
        )
        return add_logits(
            net,
            end_points,
            num_classes,
            dropout_keep_prob,
            prediction_fn,
            spatial_squeeze,
            data_format,
        )


def s3dg_arg_scope(
    weight_decay: float = 1e-7, batch_norm_decay: float = 0.999, batch_norm_epsilon: float = 0.001
) -> Any:
    """Returns the arg scope of `s3dg`.

    Args:
      weight_decay: factor of the L2 losses.
      batch_norm_decay: of the moving averages.
      batch_norm_epsilon: added to the variance.
    """
    return i3d_utils.video_arg_scope(
        weight_decay, batch_norm_decay, batch_norm_epsilon, separable=True
    )


NETWORKS = {"s3dg": Network(s3dg, s3dg_arg_scope)}
