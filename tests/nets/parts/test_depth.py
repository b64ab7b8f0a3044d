"""Numbers of channels under a depth multiplier."""

import math

import pytest

from nets.parts.depth import check_depths, make_divisible, scaled


@pytest.mark.parametrize("divisor", [1, 4, 8, 16])
@pytest.mark.parametrize("value", [0.3, 3, 11.9, 12, 28, 44.8, 1000.5])
def test_make_divisible(value, divisor):
    """The result is a multiple of the divisor, near the value and never under 90% of it."""
    result = make_divisible(value, divisor)
    assert result % divisor == 0
    assert result >= max(divisor, 0.9 * value)
    assert result - value <= divisor
    assert make_divisible(result, divisor) == result


def test_least_widths():
    """A width is multiplied and rounded, but stays at the least value."""
    assert make_divisible(3, divisor=4, min_value=20) == 20
    assert scaled(30, 0.35, min_depth=8) == 10
    assert scaled(30, 0.2, min_depth=8) == 8


@pytest.mark.parametrize("value", [0, -0.5, math.inf, math.nan, None, "1.0"])
def test_bad_depth_multiplier(value):
    """A depth multiplier that is not a positive number is named."""
    with pytest.raises(ValueError, match=f"^depth_multiplier must be a positive .*, got {value!r}"):
        check_depths(value, min_depth=8)


@pytest.mark.parametrize("name", ["min_depth", "divisible_by"])
@pytest.mark.parametrize("value", [0, -8, 2.5, None])
def test_bad_counts(name, value):
    """A number of channels below one, or not whole, is named."""
    counts = {"min_depth": 8, "divisible_by": 8, name: value}
    with pytest.raises(ValueError, match=f"^{name} must be a whole number .*, got {value!r}"):
        check_depths(1.0, **counts)
