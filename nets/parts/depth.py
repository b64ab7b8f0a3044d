"""How many channels a layer gets when its network is made thinner or wider.

The depth multiplier (width multiplier) of Howard et al. 2017, section 3.3,
https://arxiv.org/abs/1704.04861.
"""

import math
import numbers
from typing import Any

from nets.parts.network import check_at_least


def scaled(depth: int, depth_multiplier: float, min_depth: int) -> int:
    """Returns `depth` times the multiplier, rounded down, and at least `min_depth`.

    >>> scaled(512, 0.25, min_depth=8), scaled(16, 0.25, min_depth=8)
    (128, 8)
    """
    return max(int(depth * depth_multiplier), min_depth)


def make_divisible(value: float, divisor: int = 8, min_value: int | None = None) -> int:
    """Returns the multiple of `divisor` next to `value`, but at least 90% of it.

    >>> [make_divisible(value) for value in (3, 28, 44.8)]
    [8, 32, 48]
    >>> make_divisible(11.9)  # 8 would be less than 90%
    16
    """
    if min_value is None:
        min_value = divisor
    nearest = max(min_value, int(value + divisor / 2) // divisor * divisor)
    return nearest if nearest >= 0.9 * value else nearest + divisor


def check_depths(depth_multiplier: Any, min_depth: Any, divisible_by: Any = 1) -> None:
    """Raises ValueError unless the multiplier is positive and the other two are at least 1."""
    number = isinstance(depth_multiplier, numbers.Real)
    if not (number and 0 < float(depth_multiplier) < math.inf):
        raise ValueError(f"depth_multiplier must be a positive number, got {depth_multiplier!r}")
    for name, value in (("min_depth", min_depth), ("divisible_by", divisible_by)):
        check_at_least(name, value, 1)
