"""Inception-v4: its blocks, and images of unknown size."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import inception_v4
from tests.nets import graphs, reference
from tests.nets.values import evaluate, variable_names


@pytest.mark.parametrize(
    ("block", "scope", "shape"),
    [
        ("block_inception_a", "BlockInceptionA", [2, 9, 7, 384]),
        ("block_reduction_a", "BlockReductionA", [2, 4, 3, 16 + 640]),
        ("block_inception_b", "BlockInceptionB", [2, 9, 7, 1024]),
        ("block_reduction_b", "BlockReductionB", [2, 4, 3, 16 + 512]),
        ("block_inception_c", "BlockInceptionC", [2, 9, 7, 1536]),
    ],
)
def test_blocks_alone(block, scope, shape):
    """A block takes maps of any size and depth, has a scope of its own, and may be reused."""
    build = getattr(inception_v4, block)
    net = build(tf.zeros([2, 9, 7, 16]))
    assert net.shape.as_list() == shape
    names = variable_names()
    assert all(name.startswith(f"{scope}/Branch_") for name in names)
    build(tf.zeros([2, 9, 7, 16]), scope, reuse=True)
    assert variable_names() == names


@pytest.mark.slow
def test_blocks_are_those_of_the_network():
    """Each block in the scope of one of the network's computes what that one does."""
    images = tf.constant(reference.images([1, 75, 75, 3]))
    with (
        slim.arg_scope(inception_v4.inception_v4_arg_scope()),
        slim.arg_scope([slim.batch_norm], is_training=False),
    ):
        _, end_points = inception_v4.inception_v4_base(images)
        inputs = dict(zip([*end_points][1:], end_points.values(), strict=False))
        actual = {
            name: block(inputs[name], f"InceptionV4/{name}", reuse=True)
            for name, block in {
                "Mixed_5b": inception_v4.block_inception_a,
                "Mixed_6a": inception_v4.block_reduction_a,
                "Mixed_6h": inception_v4.block_inception_b,
                "Mixed_7a": inception_v4.block_reduction_b,
                "Mixed_7d": inception_v4.block_inception_c,
            }.items()
        }
    actual, wanted = evaluate([actual, {name: end_points[name] for name in actual}])
    for name, value in actual.items():
        np.testing.assert_array_equal(value, wanted[name])


@pytest.mark.slow
def test_images_of_unknown_size():
    """Without auxiliary head one graph takes images of any size and number; with it, none."""
    images = tf.placeholder(tf.float32, [None, None, None, 3])
    message = r"create_aux_logits must be False for images of unknown height or width, got True"
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        with pytest.raises(ValueError, match=message):
            graphs.build("inception_v4", images)
        logits, _ = graphs.build("inception_v4", images, create_aux_logits=False)
    with graphs.session(tf.get_default_graph()) as sess:
        sess.run(tf.global_variables_initializer())
        for shape in ([1, 75, 80, 3], [3, 90, 75, 3]):
            value = sess.run(logits, {images: reference.images(shape)})
            assert value.shape == (shape[0], 10)
            assert np.isfinite(value).all()
