"""Dropping height and width of logits."""

import pytest
import tensorflow.compat.v1 as tf

from nets.parts.squeeze import squeeze_pixel


def test_one_pixel_is_dropped():
    """Height and width of one pixel go, whatever the batch."""
    assert squeeze_pixel(tf.zeros([1, 1, 1, 10]), [1, 2]).shape.as_list() == [1, 10]


def test_unknown_sizes_are_dropped():
    """Unknown height and width are taken to be one pixel."""
    logits = tf.placeholder(tf.float32, [None, None, None, 10])
    assert squeeze_pixel(logits, [1, 2]).shape.as_list() == [None, 10]


@pytest.mark.parametrize("shape", [(2, 2, 1, 10), (2, 1, 3, 10)])
def test_more_pixels(shape):
    """More than one pixel is named with the shape."""
    message = rf"^spatial_squeeze needs logits of 1 x 1 pixel, got shape \({shape[0]}, {shape[1]},"
    with pytest.raises(ValueError, match=message):
        squeeze_pixel(tf.zeros(shape), [1, 2])
