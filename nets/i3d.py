"""I3D: Inception v1 with kernels inflated along time, for video.

Quo Vadis, Action Recognition? A New Model and the Kinetics Dataset, Carreira and
Zisserman 2017, https://arxiv.org/abs/1705.07750, figure 3.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import i3d_utils
from nets.parts.initializers import trunc_normal  # noqa: F401 - TF-Slim's module has the name
from nets.parts.network import Network, takes
from nets.parts.video_blocks import InceptionV1Video
from nets.parts.video_head import Video, add_logits

conv3d_spatiotemporal = i3d_utils.conv3d_spatiotemporal


def i3d_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1"
) -> tuple[Any, dict[str, Any]]:
    """Builds the layers of I3D up to `final_endpoint`.

    Args:
      inputs: `[batch, frames, height, width, channels]` float32.
      final_endpoint: the last layer to build, one of the end points of `i3d`.
      scope: variable scope.

    Returns:
      The last layer's output (of `Mixed_5c` `[batch, frames / 8, height / 32, width / 32,
      1024]`), and the end points in order.

    Raises:
      ValueError: if `final_endpoint` is none of them.
    """
    network = InceptionV1Video(first_temporal_kernel_size=7)
    with tf.variable_scope(scope, "InceptionV1", [inputs]):
        return network.base(inputs, final_endpoint)


@takes(Video(size=224))
def i3d(
    inputs: Any,
    num_classes: int | None = 1000,
    dropout_keep_prob: float = 0.8,
    is_training: bool = True,
    prediction_fn: Callable[..., Any] | None = slim.softmax,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: Any = "InceptionV1",
) -> tuple[Any, dict[str, Any]]:
    """Builds I3D.

    Args:
      inputs: `[batch, frames, height, width, channels]` float32, of 3 channels (1 for
        grey, 2 for optical flow, or any other number); designed for 64 frames of 224 x 224.
      num_classes: width of the logits; 0 or None returns the features before them.
      dropout_keep_prob: share of the features that dropout keeps.
      is_training: whether dropout is active and batch normalization uses the batch.
      prediction_fn: makes `Predictions` from the logits; None for none.
      spatial_squeeze: whether the logits lose height and width, which must be 1: frames
        of at most 224 x 224.
      reuse: whether the variables exist already.
      scope: variable scope.

    Returns:
      Logits `[batch, num_classes]`, averaged over time, or `[batch, 1, 1, num_classes]`
      without `spatial_squeeze`, or features `[batch, frames / 8 - 1, 1, 1, 1024]`; and the
      end points `Conv2d_1a_7x7`, `MaxPool_2a_3x3`, `Conv2d_2b_1x1`, `Conv2d_2c_3x3`,
      `MaxPool_3a_3x3`, `Mixed_3b`, `Mixed_3c`, `MaxPool_4a_3x3`, `Mixed_4b` to `Mixed_4f`,
      `MaxPool_5a_2x2`, `Mixed_5b`, `Mixed_5c`, and with classes `Logits`, `Predictions`.

    Raises:
      ValueError: if `inputs` has another rank or unknown channels, `num_classes` is negative,
        or `spatial_squeeze` cannot be done.
    """
    with (
        tf.variable_scope(scope, "InceptionV1", [inputs], reuse=reuse) as entered,
        slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training),
    ):
        net, end_points = i3d_base(inputs, scope=entered)
        return add_logits(
            net, end_points, num_classes, dropout_keep_prob, prediction_fn, spatial_squeeze
        )


def i3d_arg_scope(
    weight_decay: float = 1e-7,
    batch_norm_decay: float = 0.999,
    batch_norm_epsilon: float = 0.001,
    use_renorm: bool = False,
    separable_conv3d: bool = False,
) -> Any:
    """Returns the arg scope of `i3d`.

    Args:
      weight_decay: factor of the L2 losses.
      batch_norm_decay: of the moving averages.
      batch_norm_epsilon: added to the variance.
      use_renorm: batch renormalization (Ioffe 2017, https://arxiv.org/abs/1702.03275).
      separable_conv3d: whether each kernel over space and time is split in two.
    """
    return i3d_utils.video_arg_scope(
        weight_decay, batch_norm_decay, batch_norm_epsilon, separable_conv3d, use_renorm
    )


NETWORKS = {"i3d": Network(i3d, i3d_arg_scope)}
