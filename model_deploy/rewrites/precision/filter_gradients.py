"""The gradient of a convolution's filter in bfloat16, computed by matrix products.

TensorFlow's CPU kernel takes some 25 ns per weight, however few output positions there are: for few
positions it is slower than in float32.  For a filter of 3 x 3 x 512 x 512 and 8 images of 5 x 5 it
takes 52 ms, matrix products 21.
"""

from typing import Any

import tensorflow.compat.v1 as tf

# With more output positions the kernel is faster, for filters larger than 1 x 1.
_MOST_POSITIONS = 100


def as_products(op: Any, images: Any, filters: Any, gradient: Any) -> Any:
    """Computes the gradient of the filter of a `Conv2D` by matrix products, where that is faster.

    Args:
      op: the convolution.
      images: [batch, height, width, channels].
      filters: [rows, columns, channels, outputs].
      gradient: gradient of the convolution's output, [batch, output rows, columns, outputs].

    Returns:
      The gradient, of the shape of `filters`; None where the kernel is faster, and for channels
      first, dilations, groups or unknown sizes.
    """
    rows, columns, channels, outputs = filters.shape.as_list()
    sizes = [*images.shape.as_list()[1:], *gradient.shape.as_list()[1:3]]
    is_plain = op.get_attr("data_format") == b"NHWC" and set(op.get_attr("dilations")) == {1}
    if None in (rows, columns, *sizes) or not is_plain or sizes[2] != channels:
        return None
    height, width, _, down, across = sizes
    if rows * columns > 1 and down * across > _MOST_POSITIONS:
        return None
    _, *strides, _ = op.get_attr("strides")
    paddings = _paddings(op, (height, width), (rows, columns), (down, across), strides)
    if any(sum(pair) for pair in paddings):
        images = tf.pad(images, [[0, 0], *paddings, [0, 0]])
    flat = tf.reshape(gradient, [-1, outputs])
    products = []
    for i in range(rows):
        for j in range(columns):
            seen = images
            if (rows, columns, *strides) != (1, 1, 1, 1):
                down_end, across_end = (down - 1) * strides[0] + 1, (across - 1) * strides[1] + 1
                seen = images[:, i : i + down_end : strides[0], j : j + across_end : strides[1], :]
            seen = tf.reshape(seen, [-1, channels])
            products.append(tf.matmul(seen, flat, transpose_a=True))
    return tf.reshape(tf.stack(products), [rows, columns, channels, outputs])


def _paddings(
    op: Any,
    sizes: tuple[int, int],
    filters: tuple[int, int],
    positions: tuple[int, int],
    strides: list[int],
) -> list[list[int]]:
    """Returns the numbers of zeros before and after the rows, and the columns, of the images."""
    padding = op.get_attr("padding")
    if padding == b"EXPLICIT":
        _, _, *given, _, _ = op.get_attr("explicit_paddings")
        return [list(given[:2]), list(given[2:])]
    if padding == b"VALID":
        return [[0, 0], [0, 0]]
    found = []
    for size, length, count, stride in zip(sizes, filters, positions, strides, strict=True):
        total = max((count - 1) * stride + length - size, 0)
        found.append([total // 2, total - total // 2])
    return found
