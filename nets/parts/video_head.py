"""What video networks share around their layers: input and logits."""

import dataclasses
import types
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.kernels import fitting
from nets.parts.network import Images
from nets.parts.squeeze import squeeze_pixel


@dataclasses.dataclass(frozen=True)
class Video(Images):
    """Video that a network takes, NDHWC, or NCDHW where the call's `data_format` says so."""

    rank: int = 5
    channels: tuple[int, ...] = (1, 2, 3)  # grey, optical flow, RGB
    other_channels: bool = True

    def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raises ValueError if the argument called `name` is not such video."""
        shape = arguments[name].shape
        if shape.rank == self.rank and arguments.get("data_format") == "NCDHW":
            batch, channels, *sizes = shape.as_list()
            shape = tf.TensorShape([batch, *sizes, channels])
        super().check(name, {**arguments, name: types.SimpleNamespace(shape=shape)})


def add_logits(
    net: Any,
    end_points: dict[str, Any],
    num_classes: int | None,
    dropout_keep_prob: float,
    prediction_fn: Callable[..., Any] | None,
    squeeze: bool,
    data_format: str = "NDHWC",
) -> tuple[Any, dict[str, Any]]:
    """Adds pooling, dropout, logits averaged over time, and predictions.

    Args:
      net: `[batch, frames, height, width, depth]` float32.
      end_points: those so far; `Logits` and `Predictions` are added.
      num_classes: width of the logits; 0 or None returns the features before them.
      dropout_keep_prob: share of the features that dropout keeps.
      prediction_fn: makes `Predictions` from the logits; None for none.
      squeeze: whether the logits lose height and width, which must be 1.
      data_format: NDHWC or NCDHW, of `net`.

    Returns:
      Logits `[batch, num_classes]`, or `[batch, height, width, num_classes]` without
      `squeeze`, or features `[batch, frames, height, width, depth]`; the end points.
    """
    frames, height, width = (data_format.index(letter) for letter in "DHW")
    size = net.shape.as_list()
    kernel = fitting([2, 7, 7], [size[axis] for axis in (frames, height, width)])
    with tf.variable_scope("Logits"):
        net = slim.avg_pool3d(
            net, kernel, stride=1, data_format=data_format, scope="AvgPool_0a_7x7"
        )
        if not num_classes:
            return net, end_points
        net = slim.dropout(net, dropout_keep_prob, scope="Dropout_0b")
        logits = slim.conv3d(
            net,
            num_classes,
            [1, 1, 1],
            activation_fn=None,
            normalizer_fn=None,
            data_format=data_format,
            scope="Conv2d_0c_1x1",
        )
        logits = tf.reduce_mean(logits, axis=frames)
        if squeeze:
            # The frames in front of height and width are gone.
            logits = squeeze_pixel(logits, [height - 1, width - 1])
        end_points["Logits"] = logits
        if prediction_fn is not None:
            end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points
