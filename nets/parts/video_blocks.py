"""Inception v1 over video, as I3D and S3D-G share it.

Quo Vadis, Action Recognition? A New Model and the Kinetics Dataset, Carreira and
Zisserman 2017, https://arxiv.org/abs/1705.07750, figure 3; and Rethinking Spatiotemporal
Feature Learning, Xie et al. 2018, https://arxiv.org/abs/1712.04851.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from model_deploy import slim
from nets.i3d_utils import conv3d_spatiotemporal, inception_block_v1_3d
from nets.parts.branches import Layer, run_steps
from nets.parts.inception_v1_layers import END_POINTS, LAYERS, Conv, Mixed, Pool
from nets.parts.initializers import trunc_normal
from nets.parts.network import check_choice

# Layers with a kernel over more than one pixel, which can look along time as well.
TEMPORAL_LAYERS = (
    "Conv2d_2c_3x3",
    *(name for name, layer in LAYERS.items() if isinstance(layer, Mixed)),
)


@dataclasses.dataclass(frozen=True)
class InceptionV1Video:
    """Inception v1 over video, in the variations of I3D and S3D-G.

    Attributes:
      first_temporal_kernel_size: frames that the first convolution looks at.
      first_settings: more arguments of `conv3d_spatiotemporal` for the first convolution; all
        others are left to its arg scope.
      temporal_conv_startat: the first layer that looks at 3 frames, not 1; None for none.
      gating_fn: `gating_fn(net, scope=...)` gates the end of each branch.
      gating_startat: the first layer with gating; None for none.
      depth: width of a layer, from its width in the paper.
      data_format: NDHWC or NCDHW.
    """

    first_temporal_kernel_size: int
    first_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    temporal_conv_startat: str | None = TEMPORAL_LAYERS[0]
    gating_fn: Callable[..., Any] | None = None
    gating_startat: str | None = None
    depth: Callable[[int], int] = int
    data_format: str = "NDHWC"

    def __post_init__(self) -> None:
        check_choice("data_format", self.data_format, ("NDHWC", "NCDHW"))
        check_choice("first_temporal_kernel_size", self.first_temporal_kernel_size, (1, 3, 5, 7))
        for field in ("temporal_conv_startat", "gating_startat"):
            check_choice(field, getattr(self, field), (None, *TEMPORAL_LAYERS))

    def base(self, inputs: Any, final_endpoint: str) -> tuple[Any, dict[str, Any]]:
        """Builds the layers up to `final_endpoint`, one of `END_POINTS`.

        Args:
          inputs: `[batch, frames, height, width, channels]` float32, or as `data_format` says.
          final_endpoint: name of the last layer.

        Returns:
          The last layer's output (of the whole network `[batch, frames / 8, height / 32,
          width / 32, 1024]`), and the end points in order.

        Raises:
          ValueError: if there is no such end point.
        """
        layers = [slim.conv3d, slim.max_pool3d, conv3d_spatiotemporal]
        with (
            slim.arg_scope([slim.conv3d], weights_initializer=trunc_normal(0.01)),
            slim.arg_scope(layers, stride=1, padding="SAME", data_format=self.data_format),
            slim.arg_scope([slim.batch_norm], data_format=self.data_format.replace("D", "")),
        ):
            return run_steps(inputs, {name: self._layer(name) for name in LAYERS}, final_endpoint)

    def _layer(self, name: str) -> Layer:
        layer = LAYERS[name]
        if isinstance(layer, Pool):
            return lambda net: slim.max_pool3d(net, layer.kernel, stride=layer.stride, scope=name)
        if isinstance(layer, Mixed):
            return self._mixed(name, layer)
        return self._conv(name, layer)

    def _conv(self, name: str, layer: Conv) -> Layer:
        width = self.depth(layer.width)
        if layer.side == 1:
            return lambda net: slim.conv3d(net, width, [1, 1, 1], scope=name)
        if layer.stride > 1:
            kernel = [self.first_temporal_kernel_size, layer.side, layer.side]
            return lambda net: conv3d_spatiotemporal(
                net, width, kernel, stride=layer.stride, scope=name, **self.first_settings
            )
        kernel, gate = [self._frames(name), layer.side, layer.side], self._gate(name)

        def gated(net: Any) -> Any:
            net = conv3d_spatiotemporal(net, width, kernel, scope=name)
            return gate(net, scope=name) if gate else net

        return gated

    def _mixed(self, name: str, layer: Mixed) -> Layer:
        return lambda net: inception_block_v1_3d(
            net,
            self.depth(layer.branch_0),
            self.depth(layer.branch_1[0]),
            self.depth(layer.branch_1[1]),
            self.depth(layer.branch_2[0]),
            self.depth(layer.branch_2[1]),
            self.depth(layer.branch_3),
            temporal_kernel_size=self._frames(name),
            self_gating_fn=self._gate(name),
            data_format=self.data_format,
            scope=name,
        )

    def _frames(self, name: str) -> int:
        return 3 if _reached(name, self.temporal_conv_startat) else 1

    def _gate(self, name: str) -> Callable[..., Any] | None:
        return self.gating_fn if _reached(name, self.gating_startat) else None


def _reached(layer: str, start: str | None) -> bool:
    return start is not None and END_POINTS.index(layer) >= END_POINTS.index(start)
