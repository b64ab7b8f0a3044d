"""Kernels of pools on feature maps that may be smaller than what the network was designed for."""

from collections.abc import Sequence


def fitting(kernel: Sequence[int], sizes: Sequence[int | None]) -> list[int]:
    """Returns the kernel, cut down to each size that is known and smaller.

    >>> fitting([2, 7, 7], [8, 4, None])
    [2, 4, 7]
    """
    return [
        side if size is None else min(side, size) for side, size in zip(kernel, sizes, strict=True)
    ]
