"""Dropping height and width of logits."""

import pytest
import tensorflow.compat.v1 as tf

from nets.parts.squeeze import squeeze_pixel


@pytest.mark.parametrize("shape", [[1, 1, 1, 10], [None, None, None, 10]])
def test_one_pixel_is_dropped(shape):
    """Height and width of one pixel go, whatever the batch; unknown ones are taken to be one."""
    logits = tf.placeholder(tf.float32, shape)
    assert squeeze_pixel(logits, [1, 2]).shape.as_list() == [shape[0], 10]


@pytest.mark.parametrize("shape", [(2, 2, 1, 10), (2, 1, 3, 10)])
def test_more_pixels(shape):
    """More than one pixel is named with the shape."""
    message = rf"^spatial_squeeze needs logits of 1 x 1 pixel, got shape \({shape[0]}, {shape[1]},"
    with pytest.raises(ValueError, match=message):
        squeeze_pixel(tf.zeros(shape), [1, 2])
