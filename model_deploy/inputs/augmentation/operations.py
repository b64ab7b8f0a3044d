"""The 14 operations of RandAugment, on images of 0 to 255.

E. Cubuk, B. Zoph, J. Shlens, Q. Le: "RandAugment", 2019, https://arxiv.org/abs/1909.13719.
Strengths are on the linear scale of AutoAugment (https://arxiv.org/abs/1805.09501, table 6): 0
changes nothing, and 1, which is magnitude 10, is the maximum in the table.  For operations with a
direction the sign of the strength is the direction.

| operation | at strength s, from -1 to 1 |
|---|---|
| identity | nothing |
| autocontrast | each channel stretched to 0 to 255, for any s |
| equalize | each channel with about as many pixels of each value, for any s |
| rotate | by 30 s degrees around the centre |
| shear_x, shear_y | by 0.3 s, with the first row or column fixed |
| translate_x, translate_y | by 0.45 s of the width or height (150 pixels of 331) |
| solarize | values from 256 - 256 abs(s) on become 255 - value |
| posterize | 8 - 4 abs(s) bits of each value are left |
| color, contrast, brightness, sharpness | 1 + 0.9 s times as far from grey, from the mean grey, |
| | from black, from the smoothed image |

Each takes images, uint8 [n, h, w, c] with 1 or 3 channels (n may be 0), and strengths, float32 [n];
and returns uint8 [n, h, w, c].  Pixels from outside of an image are 128.
"""

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model_deploy.inputs.preprocessing.images import to_grey

OUTSIDE = 128
_VALUES = 256


def identity(images: Any, strengths: Any) -> Any:
    """Returns the images unchanged."""
    del strengths
    return images


def autocontrast(images: Any, strengths: Any) -> Any:
    """Stretches each channel to the values 0 to 255; a constant channel is unchanged."""
    del strengths
    pixels = tf.cast(images, tf.float32)
    least = tf.reduce_min(pixels, axis=[1, 2], keepdims=True)
    spread = tf.reduce_max(pixels, axis=[1, 2], keepdims=True) - least
    constant = spread <= 0
    gain = tf.where(constant, 1.0, 255.0 / tf.where(constant, 1.0, spread))
    return rounded((pixels - tf.where(constant, 0.0, least)) * gain)


def equalize(images: Any, strengths: Any) -> Any:
    """Equalizes each channel's histogram: a value becomes its rank among the pixels.

    With step = (pixels - pixels of the largest value) // 255, a value becomes (pixels below it +
    step / 2) / step; a channel with step 0 is unchanged.
    """
    del strengths
    shape = tf.shape(images)
    planes = shape[0] * shape[3]
    # One table for all channels of all images, with 256 places each.
    first = tf.reshape(tf.range(planes) * _VALUES, [shape[0], 1, 1, shape[3]])
    places = tf.cast(images, tf.int32) + first
    counts = tf.raw_ops.Bincount(
        arr=tf.reshape(places, [-1]), size=planes * _VALUES, weights=tf.zeros([0], tf.int32)
    )
    counts = tf.reshape(counts, [planes, _VALUES])
    values = tf.range(_VALUES)
    last = tf.reduce_max(tf.where(counts > 0, values, 0), axis=1, keepdims=True)
    of_last = tf.reduce_sum(tf.where(tf.equal(values, last), counts, 0), axis=1, keepdims=True)
    steps = (shape[1] * shape[2] - of_last) // (_VALUES - 1)
    below = tf.cumsum(counts, axis=1, exclusive=True)
    equalized = tf.minimum((below + steps // 2) // tf.maximum(steps, 1), _VALUES - 1)
    table = tf.cast(tf.where(steps > 0, equalized, values), tf.uint8)
    return tf.gather(tf.reshape(table, [-1]), places)


def rotate(images: Any, strengths: Any) -> Any:
    """Rotates around the centre, clockwise for strengths above 0."""
    angles = strengths * (30 * math.pi / 180)
    cos, sin = tf.cos(angles), tf.sin(angles)
    middle = (tf.cast(_sides(images), tf.float32) - 1) / 2
    middle_y, middle_x = middle[0], middle[1]
    return _warp(
        images,
        [cos, sin, middle_x - cos * middle_x - sin * middle_y],
        [-sin, cos, middle_y + sin * middle_x - cos * middle_y],
    )


def shear_x(images: Any, strengths: Any) -> Any:
    """Moves each row to the left by 0.3 s times its number."""
    one, zero = tf.ones_like(strengths), tf.zeros_like(strengths)
    return _warp(images, [one, 0.3 * strengths, zero], [zero, one, zero])


def shear_y(images: Any, strengths: Any) -> Any:
    """Moves each column up by 0.3 s times its number."""
    one, zero = tf.ones_like(strengths), tf.zeros_like(strengths)
    return _warp(images, [one, zero, zero], [0.3 * strengths, one, zero])


def translate_x(images: Any, strengths: Any) -> Any:
    """Moves to the left by whole pixels, about 0.45 s of the width."""
    one, zero = tf.ones_like(strengths), tf.zeros_like(strengths)
    pixels = tf.round(0.45 * strengths * tf.cast(_sides(images)[1], tf.float32))
    return _warp(images, [one, zero, pixels], [zero, one, zero])


def translate_y(images: Any, strengths: Any) -> Any:
    """Moves up by whole pixels, about 0.45 s of the height."""
    one, zero = tf.ones_like(strengths), tf.zeros_like(strengths)
    pixels = tf.round(0.45 * strengths * tf.cast(_sides(images)[0], tf.float32))
    return _warp(images, [one, zero, zero], [zero, one, pixels])


def solarize(images: Any, strengths: Any) -> Any:
    """Inverts the values that are not below a threshold."""
    thresholds = tf.cast(tf.math.ceil(_VALUES * (1 - tf.abs(strengths))), tf.int32)
    below = tf.range(_VALUES) < thresholds[:, tf.newaxis]
    # 255 - value is the value with all bits inverted.
    flips = tf.where(below, 0, _VALUES - 1)
    return _by_table(images, tf.bitwise.bitwise_xor(flips, tf.range(_VALUES)))


def posterize(images: Any, strengths: Any) -> Any:
    """Sets the lower bits to 0."""
    lost = tf.cast(tf.round(4 * tf.abs(strengths)), tf.uint8)[:, tf.newaxis, tf.newaxis, tf.newaxis]
    return tf.bitwise.left_shift(tf.bitwise.right_shift(images, lost), lost)


def color(images: Any, strengths: Any) -> Any:
    """Moves colours away from the grey of the same brightness, or towards it."""
    pixels = tf.cast(images, tf.float32)
    return _away_from(to_grey(pixels), pixels, strengths)


def contrast(images: Any, strengths: Any) -> Any:
    """Moves values away from the image's mean grey, or towards it."""
    pixels = tf.cast(images, tf.float32)
    mean = tf.reduce_mean(to_grey(pixels), axis=[1, 2, 3], keepdims=True)
    return _away_from(tf.round(mean), pixels, strengths)


def brightness(images: Any, strengths: Any) -> Any:
    """Moves values away from black, or towards it."""
    return _away_from(0.0, tf.cast(images, tf.float32), strengths)


def sharpness(images: Any, strengths: Any) -> Any:
    """Moves values away from the smoothed image, or towards it; the border is unchanged.

    A smoothed pixel is the mean of the pixel, with weight 5, and its eight neighbours.
    """
    pixels = tf.cast(images, tf.float32)
    rows = pixels[:, :-2] + pixels[:, 1:-1] + pixels[:, 2:]
    neighbours = rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]
    inner = pixels[:, 1:-1, 1:-1]
    detail = inner - (neighbours + 4 * inner) / 13
    change = tf.pad(_per_image(0.9 * strengths) * detail, [[0, 0], [1, 1], [1, 1], [0, 0]])
    return rounded(pixels + change)


# In the order of the paper.
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    each.__name__: each
    for each in (
        *(identity, autocontrast, equalize, rotate, solarize, color, posterize),
        *(contrast, brightness, sharpness, shear_x, shear_y, translate_x, translate_y),
    )
}


def _away_from(zero: Any, pixels: Any, strengths: Any) -> Any:
    return rounded(pixels + _per_image(0.9 * strengths) * (pixels - zero))


def _per_image(values: Any) -> Any:
    return values[:, tf.newaxis, tf.newaxis, tf.newaxis]


def rounded(pixels: Any) -> Any:
    """Rounds and clips `pixels`, float32, to 0 to 255, uint8 of the same shape."""
    return tf.cast(tf.clip_by_value(tf.round(pixels), 0.0, 255.0), tf.uint8)


def _by_table(images: Any, tables: Any) -> Any:
    """Replaces each value by its entry in the image's table, int32 [n, 256]."""
    first = _per_image(tf.range(tf.shape(images)[0]) * _VALUES)
    table = tf.reshape(tf.cast(tables, tf.uint8), [-1])
    return tf.gather(table, tf.cast(images, tf.int32) + first)


def _sides(images: Any) -> Any:
    """Returns height and width, int32 [2]."""
    return tf.shape(images)[1:3]


def _warp(images: Any, x: list[Any], y: list[Any]) -> Any:
    """Takes each pixel from (x, y) = (x0 column + x1 row + x2, y0 column + y1 row + y2)."""
    zero = tf.zeros_like(x[0])
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.stack([*x, *y, zero, zero], axis=1),
        output_shape=_sides(images),
        fill_value=float(OUTSIDE),
        interpolation="NEAREST",
        fill_mode="CONSTANT",
    )
