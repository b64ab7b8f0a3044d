"""What a block of a cell does with a state: convolutions, pooling, or nothing."""

import re
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.nasnet.feature_maps import get_channel_dim, normalized_conv

# What states are clipped to with bounded activations: as far as ReLU6 reaches.
CLIP_BY_VALUE_CAP = 6

_NAME = re.compile(
    r"(?P<kind>separable|avg_pool|max_pool)_(?P<size>\d+)x(?P=size)(_(?P<layers>\d+))?"
)


class Operation(NamedTuple):
    """One operation of a cell.

    Attributes:
      kind: `separable`, `avg_pool`, `max_pool` or `none`.
      size: height and width of its kernel.
      layers: how often a separable convolution is done; the first one strides.
      bounded: ReLU6 in place of ReLU, and results within `CLIP_BY_VALUE_CAP` of zero.
    """

    kind: str
    size: int = 1
    layers: int = 1
    bounded: bool = False

    @classmethod
    def of(cls, name: str, bounded: bool = False) -> "Operation":
        """Returns the operation called so: `separable_5x5_2`, `avg_pool_3x3`, `none`.

        Raises:
          ValueError: if no operation has this name.

        >>> Operation.of("separable_5x5_2")
        Operation(kind='separable', size=5, layers=2, bounded=False)
        """
        if name == "none":
            return cls(name, bounded=bounded)
        match = _NAME.fullmatch(name)
        if match is None or (match["kind"] == "separable") != bool(match["layers"]):
            raise ValueError(
                "operation must be none or like separable_5x5_2, avg_pool_3x3, max_pool_3x3,"
                f" got {name!r}"
            )
        return cls(match["kind"], int(match["size"]), int(match["layers"] or 1), bounded)

    @property
    def keeps(self) -> bool:
        """Whether the state stays as it is, where size and channels do."""
        return self.kind == "none"

    def __call__(self, net: Any, filters: int, stride: int) -> Any:
        """Builds the operation.

        Args:
          net: a state, a feature map.
          filters: channels of the result. Where pooling or nothing would leave others, a 1x1
            convolution follows.
          stride: 1 or 2.
        """
        if self.bounded and self.kind != "separable":
            net = tf.nn.relu6(net)
        if self.kind == "separable":
            net = self._convolved(net, filters, stride)
        elif self.kind == "none":
            if stride == 1 and get_channel_dim(net.shape) == filters:
                return net
            # What is bounded has been through ReLU6.
            net = net if self.bounded else tf.nn.relu(net)
            net = normalized_conv(net, filters, "1x1", "bn_1", stride)
        else:
            pool = slim.avg_pool2d if self.kind == "avg_pool" else slim.max_pool2d
            net = pool(net, [self.size, self.size], stride=stride, padding="SAME")
            if get_channel_dim(net.shape) != filters:
                net = normalized_conv(net, filters, "1x1", "bn_1")
        return tf.clip_by_value(net, -CLIP_BY_VALUE_CAP, CLIP_BY_VALUE_CAP) if self.bounded else net

    def _convolved(self, net: Any, filters: int, stride: int) -> Any:
        """Returns a separable convolution, done `layers` times; the first one strides."""
        activation_fn = tf.nn.relu6 if self.bounded else tf.nn.relu
        for layer in range(1, self.layers + 1):
            suffix = f"{self.size}x{self.size}_{layer}"
            net = slim.separable_conv2d(
                activation_fn(net),
                filters,
                [self.size, self.size],
                depth_multiplier=1,
                stride=stride if layer == 1 else 1,
                scope=f"separable_{suffix}",
            )
            net = slim.batch_norm(net, scope=f"bn_sep_{suffix}")
        return net
