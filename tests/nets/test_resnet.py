"""The resolution of ResNet's feature maps, and its blocks."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import resnet_utils, resnet_v1, resnet_v2
from tests.nets.values import evaluate, images

VERSIONS = {1: resnet_v1, 2: resnet_v2}
pytestmark = pytest.mark.parametrize("version", VERSIONS)


def tiny(version, inputs, name="tiny", **keywords):
    """Builds a ResNet of four small blocks with strides 2, 2, 2 and 1, for features."""
    module = VERSIONS[version]
    block = getattr(module, f"resnet_v{version}_block")
    blocks = [
        block("block1", base_depth=1, num_units=3, stride=2),
        block("block2", base_depth=2, num_units=3, stride=2),
        block("block3", base_depth=4, num_units=3, stride=2),
        block("block4", base_depth=8, num_units=2, stride=1),
    ]
    with slim.arg_scope(resnet_utils.resnet_arg_scope()):
        network = getattr(module, f"resnet_v{version}")
        keywords = {"is_training": False, "global_pool": False, "scope": name, **keywords}
        return network(inputs, blocks, **keywords)


@pytest.mark.slow
def test_finer_maps_hold_the_coarse_one(version):
    """At a smaller output stride the features are those of the default, with more in between."""
    inputs, output_stride = images(2, 81, 81, 3), 4
    fine, _ = tiny(version, inputs, output_stride=output_stride)
    coarse, _ = tiny(version, inputs, reuse=True)
    assert fine.shape.as_list() == [2, *[(81 - 1) // output_stride + 1] * 2, 32]
    every = 32 // output_stride
    fine, coarse = evaluate([fine, coarse])
    np.testing.assert_allclose(fine[:, ::every, ::every], coarse, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("output_stride", "root"), [(1, True), (64, True), (16, False)])
def test_unreachable_output_stride(version, output_stride, root):
    """An output stride that no unit has is named with those that there are, before building."""
    message = f"^output_stride must be one of None, .*8.*, got {output_stride}"
    with pytest.raises(ValueError, match=message):
        tiny(
            version, tf.zeros([1, 64, 64, 3]), output_stride=output_stride, include_root_block=root
        )
    assert tf.global_variables() == []


@pytest.mark.slow
def test_shapes(version):
    """All units of a block but the last have the resolution of its input. Without the root, blocks
    stand on any feature map. Without global pooling there are logits for every position.
    """
    features, end_points = tiny(version, tf.zeros([1, 64, 64, 7]), include_root_block=False)
    assert features.shape.as_list() == [1, 8, 8, 32]
    assert "tiny/conv1" not in end_points
    inputs = tf.zeros([1, 64, 96, 3])
    logits, end_points = tiny(version, inputs, "whole", num_classes=5, spatial_squeeze=False)
    assert logits.shape.as_list() == [1, 2, 3, 5]
    assert end_points["whole/logits"] is logits
    unit = f"whole/block1/unit_{{}}/bottleneck_v{version}"
    assert [end_points[unit.format(n)].shape[1] for n in (1, 2, 3)] == [16, 16, 8]
    assert end_points["whole/block1"].shape[1] == 8
