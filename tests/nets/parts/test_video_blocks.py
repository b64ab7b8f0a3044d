"""What the blocks that I3D and S3D-G share compute."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.video_blocks import InceptionV1Video, conv3d_spatiotemporal, self_gating
from tests.nets.values import evaluate, images, variable_names


@pytest.mark.parametrize("kernel_size", [[3, 3, 3], [5, 1, 3], [1, 3, 3]])
def test_separable_convolution_starts_without_looking_along_time(kernel_size):
    """A new separable convolution is the one in space alone; ReLU twice is ReLU once."""
    inputs = images(1, 6, 8, 8, 4)
    frames, height, width = kernel_size
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        both = conv3d_spatiotemporal(inputs, 5, kernel_size, separable=True, scope="conv")
        space = slim.conv3d(inputs, 5, [1, height, width], scope="conv")
    assert any("temporal" in name for name in variable_names()) is (frames > 1)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        both, space = sess.run([both, space])
    np.testing.assert_allclose(both, space, rtol=1e-5, atol=1e-6)


def test_separable_convolution_strides_in_space_and_time():
    """A stride is taken along all three axes, whether the convolution is split or not."""
    inputs = images(1, 6, 8, 8, 4)
    shapes = [
        conv3d_spatiotemporal(
            inputs, 5, [3, 3, 3], stride=2, separable=separable, scope=f"conv_{separable}"
        ).shape.as_list()
        for separable in (True, False)
    ]
    assert shapes == 2 * [[1, 3, 4, 4, 5]]


def test_gating_scales_channels_alike_everywhere():
    """Gates are one number between 0 and 1 per video and channel."""
    inputs = 1.0 + tf.abs(images(2, 3, 4, 5, 6))
    before, after = evaluate([inputs, self_gating(inputs, "net", "NDHWC")])
    gates = after / before
    assert gates.min() > 0
    assert gates.max() < 1
    assert np.ptp(gates, axis=(1, 2, 3)).max() < 1e-6
    assert np.ptp(gates) > 0.01


def test_variations_are_checked_when_they_are_made():
    """A variation of the blocks that cannot be built fails before a graph is there."""
    with pytest.raises(ValueError, match=r"^first_temporal_kernel_size .*; got 4"):
        InceptionV1Video(first_temporal_kernel_size=4)
