"""Strides that become dilation."""

import math

import pytest

from nets.mobilenet.dilation import strides_and_rates

STRIDES = [2, 1, 2, 1, 2, 2, 1, 1, 2, 1]


@pytest.mark.parametrize("output_stride", [1, 2, 4, 8, 16, 32])
def test_strides_and_rates(output_stride):
    """Strides multiply to the output stride, and what each layer lost of them dilates it."""
    pairs = strides_and_rates(STRIDES, output_stride)
    assert math.prod(stride for stride, _ in pairs) == output_stride
    seen = 1
    built = 1
    for original, (stride, rate) in zip(STRIDES, pairs, strict=True):
        assert rate == seen // built
        seen *= original
        built *= stride


@pytest.mark.parametrize("output_stride", [None, 64])
def test_no_output_stride_changes_nothing(output_stride):
    """Without an output stride, or with one above their own, the layers keep their strides."""
    assert strides_and_rates(STRIDES, output_stride) == [(stride, 1) for stride in STRIDES]


@pytest.mark.parametrize("output_stride", [0, -8, 3, 24, 65, "8"])
def test_bad_output_stride(output_stride):
    """An output stride that the strides never reach is named with those that they do."""
    message = (
        r"^output_stride must be None or one of \[1, 2, 4, 8, 16, 32\] \(or an even number above,"
        rf" which changes nothing\), got {output_stride!r}"
    )
    with pytest.raises(ValueError, match=message):
        strides_and_rates(STRIDES, output_stride)
