"""How a stack of layers keeps a larger feature map: strides become dilation.

Chen et al. 2017, "DeepLab", section 3.1, https://arxiv.org/abs/1606.00915.
"""

import math
import numbers
from collections.abc import Sequence
from typing import Any


def strides_and_rates(strides: Sequence[int], output_stride: int | None) -> list[tuple[int, int]]:
    """Returns a (stride, dilation rate) per layer that keeps the output stride.

    Once the strides so far multiply to `output_stride`, later ones become 1, and
    the layers behind them are dilated by what was taken away.

    Args:
      strides: of each layer, in order.
      output_stride: input size / output size; None, or an even number above the product of all
        strides, leaves the strides alone.

    Raises:
      ValueError: if the products of the strides pass `output_stride` without being it, or if it is
        neither None nor a positive number.

    >>> strides_and_rates([2, 2, 1, 2, 1], output_stride=4)
    [(2, 1), (2, 1), (1, 1), (1, 1), (1, 2)]
    """
    _check(output_stride, [math.prod(strides[:count]) for count in range(len(strides) + 1)])
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


def _check(output_stride: Any, products: list[int]) -> None:
    if output_stride is None or output_stride in products:
        return
    whole = isinstance(output_stride, numbers.Integral)
    if not (whole and int(output_stride) > max(products) and int(output_stride) % 2 == 0):
        valid = sorted(set(products))
        raise ValueError(
            f"output_stride must be None or one of {valid} (or an even number above, which changes"
            f" nothing), got {output_stride!r}"
        )
