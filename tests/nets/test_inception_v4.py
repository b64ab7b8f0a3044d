"""Inception-v4: its blocks, and images of unknown size."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from nets import inception_v4
from nets.parts.inception_heads import auxiliary_head
from tests.nets import few_blocks, graphs, reference
from tests.nets.values import variable_names


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
def test_images_of_unknown_size(monkeypatch):
    """Without auxiliary head one graph takes images of any size and number; with it, none."""
    few_blocks.shorten(monkeypatch)
    message = r"create_aux_logits must be False for images of unknown height or width, got True"
    with pytest.raises(ValueError, match=message):
        auxiliary_head(tf.placeholder(tf.float32, [2, None, 17, 8]), 10, "pool", "conv", "logits")
    images = tf.placeholder(tf.float32, [None, None, None, 3])
    logits, end_points = graphs.build("inception_v4", images, create_aux_logits=False)
    assert "AuxLogits" not in end_points
    assert not tf.global_variables(".*AuxLogits")
    with graphs.session(tf.get_default_graph()) as sess:
        sess.run(tf.global_variables_initializer())
        for shape in ([1, 75, 80, 3], [3, 90, 75, 3]):
            value = sess.run(logits, {images: reference.images(shape)})
            assert value.shape == (shape[0], 10)
            assert np.isfinite(value).all()
