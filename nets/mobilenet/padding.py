"""Padding by hand: by what the kernel alone asks for, where SAME depends on the input size too."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def fixed_padding(inputs: Any, kernel_size: Sequence[int], rate: int = 1) -> Any:
    """Pads height and width with zeros for a VALID convolution.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      kernel_size: height and width of the convolution that follows.
      rate: its dilation.

    Returns:
      `[batch, height + p, width + p, channels]`, p = (kernel size - 1) * rate.
    """
    totals = [(size - 1) * rate for size in kernel_size]
    height, width = ([total // 2, total - total // 2] for total in totals)
    return tf.pad(inputs, [[0, 0], height, width, [0, 0]])


def padded(
    inputs: Any, kernel_size: Sequence[int], rate: int, use_explicit_padding: bool
) -> tuple[Any, str]:
    """Returns the input of a convolution and its padding: `SAME`, or `VALID` after `fixed_padding`.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      kernel_size: height and width of the convolution.
      rate: its dilation.
      use_explicit_padding: whether to pad by hand.
    """
    if use_explicit_padding:
        return fixed_padding(inputs, kernel_size, rate), "VALID"
    return inputs, "SAME"
