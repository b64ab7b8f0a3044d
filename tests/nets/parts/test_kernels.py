"""Kernels on feature maps that may be smaller."""

import pytest

from nets.parts.kernels import fitting


@pytest.mark.parametrize(
    ("sizes", "kernel"),
    [([9, 9], [7, 7]), ([7, 3], [7, 3]), ([None, 3], [7, 3])],
    ids=["larger", "smaller", "unknown"],
)
def test_fitting(sizes, kernel):
    """A kernel is no larger than a known size, and whole where a size is unknown."""
    assert fitting([7, 7], sizes) == kernel
