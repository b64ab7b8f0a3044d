"""Inception-v4: end points, auxiliary head, image sizes, arg scope."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import inception_v4
from tests.nets import graphs, reference
from tests.nets.values import evaluate, variable_names

# End point -> shape for 299 x 299 images (figure 3 of the paper), and trainable variables so far:
# two for each convolution.
_STEM = {
    "Conv2d_1a_3x3": ([2, 149, 149, 32], 2),
    "Conv2d_2a_3x3": ([2, 147, 147, 32], 4),
    "Conv2d_2b_3x3": ([2, 147, 147, 64], 6),
    "Mixed_3a": ([2, 73, 73, 160], 8),
    "Mixed_4a": ([2, 71, 71, 192], 20),
    "Mixed_5a": ([2, 35, 35, 384], 22),
    "Mixed_5b": ([2, 35, 35, 384], 36),
}


@pytest.mark.parametrize("final_endpoint", _STEM)
def test_base_stops_at_the_final_endpoint(final_endpoint):
    """The base builds up to the final end point, and nothing after it."""
    with slim.arg_scope(inception_v4.inception_v4_arg_scope()):
        net, end_points = inception_v4.inception_v4_base(
            tf.zeros([2, 299, 299, 3]), final_endpoint=final_endpoint
        )
    names = list(_STEM)
    assert list(end_points) == names[: names.index(final_endpoint) + 1]
    assert net is end_points[final_endpoint]
    shape, variables = _STEM[final_endpoint]
    assert net.shape.as_list() == shape
    assert len(tf.trainable_variables("InceptionV4/")) == variables


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


def test_base_rejects_an_unknown_final_endpoint():
    """A final end point that there is not is named with those that there are."""
    message = r"final_endpoint must be one of Conv2d_1a_3x3, .*, Mixed_7d, got 'Mixed_7e'"
    with pytest.raises(ValueError, match=message):
        inception_v4.inception_v4_base(tf.zeros([2, 299, 299, 3]), final_endpoint="Mixed_7e")


@pytest.mark.parametrize(
    ("side", "keywords", "smallest"),
    [
        pytest.param(106, {}, 107, id="auxiliary"),
        pytest.param(74, {"create_aux_logits": False}, 75, id="no-auxiliary"),
        pytest.param(74, {"num_classes": 0}, 75, id="features"),
    ],
)
def test_too_small_an_image(side, keywords, smallest):
    """The auxiliary head needs larger images than the rest of the network."""
    message = f"inputs must be at least {smallest} pixels high and wide, got shape"
    with pytest.raises(ValueError, match=message):
        inception_v4.inception_v4(tf.zeros([2, side, 299, 3]), **keywords)


@pytest.mark.slow
def test_smallest_image_without_the_auxiliary_head():
    """75 x 75 is enough for one position of the last map; there is no auxiliary variable."""
    images = tf.zeros([2, 75, 75, 3])
    logits, end_points = graphs.build("inception_v4", images, create_aux_logits=False)
    assert logits.shape.as_list() == [2, 10]
    assert end_points["Mixed_7d"].shape.as_list() == [2, 1, 1, 1536]
    assert "AuxLogits" not in end_points
    assert not tf.global_variables("InceptionV4/AuxLogits")


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


@pytest.mark.parametrize(
    ("keywords", "names"),
    [
        pytest.param({"use_batch_norm": False}, ["biases"], id="no-normalization"),
        pytest.param({"batch_norm_scale": True}, ["BatchNorm/gamma", "BatchNorm/beta"], id="scale"),
    ],
)
def test_arg_scope(keywords, names):
    """Convolutions have biases without normalization, and a gamma where it scales."""
    with slim.arg_scope(inception_v4.inception_v4_arg_scope(**keywords)):
        inception_v4.inception_v4_base(tf.zeros([2, 75, 75, 3]), "Conv2d_1a_3x3", scope="Net")
    scope = "Net/Conv2d_1a_3x3"
    wanted = [f"{scope}/{name}" for name in ["weights", *names]]
    assert [v.op.name for v in tf.trainable_variables()] == wanted
