"""Layer tables of the MobileNets, and the arithmetic on them; no TensorFlow.

A MobileNet is a stack of layers that can be made thinner by a depth multiplier
(Howard et al. 2017, section 3.3) and can keep a larger feature map by replacing
strides with dilation (Chen et al. 2017, "DeepLab", section 3.1).  Both are
computed here, before any layer is built.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from nets.parts.depth import check_depths, make_divisible


@dataclasses.dataclass(frozen=True)
class Conv:
    """A convolution, normalized unless `normalized` is false (then it has biases).

    `activation_fn` None means the one of the network.
    """

    num_outputs: int
    kernel_size: int = 1
    stride: int = 1
    activation_fn: Callable[..., Any] | None = None
    normalized: bool = True


@dataclasses.dataclass(frozen=True)
class ExpandedConv:
    """An inverted residual block (Sandler et al. 2018, figure 3).

    A 1x1 convolution widens the input `expansion` times (1: left out), a depthwise
    convolution of `kernel_size` and `stride` follows, then `transform(net)` if
    given, then a 1x1 convolution without activation to `num_outputs`.  The input is
    added if `residual` and the shapes are equal.

    With `fused` the first two are one full convolution of `kernel_size` and `stride`.
    """

    num_outputs: int
    expansion: float = 6
    kernel_size: int = 3
    stride: int = 1
    activation_fn: Callable[..., Any] | None = None
    transform: Callable[[Any], Any] | None = None
    residual: bool = True
    fused: bool = False

    def __post_init__(self) -> None:
        if self.fused and self.expansion == 1 and self.stride != 1:
            raise ValueError(
                "stride must be 1 in a fused block with expansion 1, which has only the 1x1"
                f" convolution to {self.num_outputs}, got {self.stride}"
            )

    def inner_size(self, num_inputs: int) -> int:
        """Returns the number of channels between the two 1x1 convolutions."""
        if self.expansion == 1:
            return num_inputs
        return make_divisible(num_inputs * self.expansion)


@dataclasses.dataclass(frozen=True)
class PoolToPixel:
    """An average over the whole feature map, which leaves height and width 1."""

    stride = 1


Layer = Conv | ExpandedConv | PoolToPixel


@dataclasses.dataclass(frozen=True)
class ConvDefs:
    """A whole network: its layers, and what they use unless they say otherwise."""

    layers: tuple[Layer, ...]
    activation_fn: Callable[..., Any]
    normalizer_fn: Callable[..., Any]
    normalizer_params: dict[str, Any]

    def thinned(
        self,
        depth_multiplier: float,
        divisible_by: int = 8,
        min_depth: int = 8,
        keep_last: bool = False,
    ) -> "ConvDefs":
        """Returns the network with `depth_multiplier` times the channels per layer.

        Args:
          depth_multiplier: any positive number; values above 1 widen.
          divisible_by: each layer gets a multiple of it.
          min_depth: the fewest channels of a layer.
          keep_last: leaves the last layer as it is where the others get thinner.

        Raises:
          ValueError: if `depth_multiplier` is not positive, or one of the others below 1.
        """
        check_depths(depth_multiplier, min_depth, divisible_by)
        count = len(self.layers) - (keep_last and depth_multiplier < 1)
        thin = (
            _thinned(layer, depth_multiplier, divisible_by, min_depth)
            for layer in self.layers[:count]
        )
        return dataclasses.replace(self, layers=(*thin, *self.layers[count:]))


def _thinned(layer: Layer, depth_multiplier: float, divisible_by: int, min_depth: int) -> Layer:
    if isinstance(layer, PoolToPixel):
        return layer
    depth = make_divisible(layer.num_outputs * depth_multiplier, divisible_by, min_depth)
    return dataclasses.replace(layer, num_outputs=depth)


def strides_and_rates(strides: Sequence[int], output_stride: int | None) -> list[tuple[int, int]]:
    """Returns a (stride, dilation rate) per layer that keeps the output stride.

    Once the strides so far multiply to `output_stride`, later ones become 1, and
    the layers behind them are dilated by what was taken away.

    Args:
      strides: of each layer, in order.
      output_stride: input size / output size, or None to leave the strides alone.

    Raises:
      ValueError: if the products of the strides never equal `output_stride`.

    >>> strides_and_rates([2, 2, 1, 2, 1], output_stride=4)
    [(2, 1), (2, 1), (1, 1), (1, 1), (1, 2)]
    """
    products = [math.prod(strides[:count]) for count in range(len(strides) + 1)]
    if output_stride is not None and output_stride not in products:
        valid = sorted(set(products))
        raise ValueError(f"output_stride must be None or one of {valid}, got {output_stride!r}")
    results = []
    current, rate = 1, 1
    for stride in strides:
        if current == output_stride:
            results.append((1, rate))
            rate *= stride
        else:
            results.append((stride, 1))
            current *= stride
    return results
