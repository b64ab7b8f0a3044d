"""What only ResNet v1 has: activations before the stride, and thinner blocks."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import resnet_v1
from tests.nets import graphs, reference


def build(**keywords):
    """Builds ResNet-50, very thin, for features of a small image."""
    images = tf.constant(reference.images([1, 65, 65, 3]))
    with slim.arg_scope(resnet_v1.resnet_arg_scope()):
        return resnet_v1.resnet_v1_50(
            images, is_training=False, global_pool=False, depth_multiplier=0.05, **keywords
        )


@pytest.mark.slow
def test_store_non_strided_activations():
    """Blocks then end before their stride: a finer map that, subsampled, gives equal features."""
    plain, plain_points = build()
    kept, kept_points = build(store_non_strided_activations=True, reuse=True)
    block = "resnet_v1_50{}/block{}"
    plain_sizes = [plain_points[block.format("", n)].shape[1] for n in (1, 2, 3, 4)]
    kept_sizes = [kept_points[f"resnet_v1_50/block{n}"].shape[1] for n in (1, 2, 3, 4)]
    assert plain_sizes == [9, 5, 3, 3]
    assert kept_sizes == [17, 9, 5, 3]
    with graphs.session(tf.get_default_graph()) as sess:
        graphs.load_weights(sess)
        plain, kept = sess.run([plain, kept])
    np.testing.assert_allclose(kept, plain, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("output_stride", [8, 16])
def test_store_non_strided_activations_when_dilated(output_stride):
    """The two keywords together give the features of the output stride alone."""
    plain, _ = build(output_stride=output_stride)
    kept, _ = build(output_stride=output_stride, store_non_strided_activations=True, reuse=True)
    with graphs.session(tf.get_default_graph()) as sess:
        graphs.load_weights(sess)
        plain, kept = sess.run([plain, kept])
    np.testing.assert_allclose(kept, plain, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("min_base_depth", "width"), [(8, 32), (2, 12)])
def test_min_base_depth(min_base_depth, width):
    """A bottleneck is no thinner than `min_base_depth`: here 64 * 0.05 = 3 would be."""
    _, end_points = build(min_base_depth=min_base_depth)
    assert end_points["resnet_v1_50/block1"].shape[-1] == width


@pytest.mark.slow
def test_all_bottlenecks_of_the_least_depth():
    """A multiplier of 0 leaves `min_base_depth` everywhere."""
    _, end_points = resnet_v1.resnet_v1_50(
        tf.zeros([1, 32, 32, 3]), depth_multiplier=0, min_base_depth=5
    )
    widths = {end_points[f"resnet_v1_50/block{n}"].shape.as_list()[-1] for n in (1, 2, 3, 4)}
    assert widths == {20}


@pytest.mark.parametrize("depth_multiplier", [-0.5, float("nan"), float("inf"), "1"])
def test_bad_depth_multiplier(depth_multiplier):
    """A multiplier that is not a number of at least 0 is named."""
    with pytest.raises(ValueError, match=r"^depth_multiplier must be a number of at least 0, got"):
        resnet_v1.resnet_v1_50(tf.zeros([1, 32, 32, 3]), depth_multiplier=depth_multiplier)


def test_bad_min_base_depth():
    """A bottleneck without channels is named."""
    with pytest.raises(ValueError, match=r"^min_base_depth must be .* at least 1, got 0"):
        resnet_v1.resnet_v1_50(tf.zeros([1, 32, 32, 3]), min_base_depth=0)
