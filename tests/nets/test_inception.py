"""The feature extractors of Inception v1 to v4 and Inception-ResNet-v2, and their heads."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import inception, inception_resnet_v2, inception_utils, inception_v4
from tests.nets import graphs, reference
from tests.nets.values import evaluate, images, variable_names

BASES = {
    "inception_v1": (inception.inception_v1_base, "Mixed_5c"),
    "inception_v2": (inception.inception_v2_base, "Mixed_5c"),
    "inception_v3": (inception.inception_v3_base, "Mixed_7c"),
    "inception_v4": (inception_v4.inception_v4_base, "Mixed_7d"),
    "inception_resnet_v2": (inception_resnet_v2.inception_resnet_v2_base, "Conv2d_7b_1x1"),
}


def names_of(name):
    """Returns the names of a feature extractor's end points, in order."""
    names = [key for key, _ in reference.load(name)["end_points"]]
    return names[: names.index(BASES[name][1]) + 1]


@pytest.mark.parametrize("name", BASES)
def test_final_endpoint(name):
    """A feature extractor stops at an end point, with those before it, as large as in the whole
    network; an unknown one is named with all, before anything is built.
    """
    base, shapes = BASES[name][0], dict(reference.load(name)["end_points"])
    names = names_of(name)
    message = "^final_endpoint must be one of Conv2d_1a.*, got 'Mixed_9z'"
    with pytest.raises(ValueError, match=message) as error:
        base(tf.zeros([1, 96, 96, 3]), final_endpoint="Mixed_9z")
    assert all(name in str(error.value) for name in names)
    assert tf.global_variables() == []
    with slim.arg_scope(inception.inception_arg_scope()):
        images = tf.zeros(reference.load(name)["input"]["shape"])
        net, end_points = base(images, final_endpoint=names[3], scope="base")
    assert net is end_points[names[3]]
    assert graphs.static_shapes(end_points) == [[key, shapes[key]] for key in names[:4]]


@pytest.mark.parametrize("name", ["inception_v1", "inception_v2"])
def test_without_the_root_block(name):
    """Without its root block a feature extractor goes on from a map of stride 8 to the same end."""
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        base, _ = BASES[name]
        _, whole = base(images(1, 64, 64, 3), "Mixed_4b", scope="base")
        names = variable_names()
        _, blocks = base(
            whole["MaxPool_3a_3x3"], "Mixed_4b", include_root_block=False, scope="base"
        )
    assert variable_names() == names
    assert list(blocks) == list(whole)[list(whole).index("Mixed_3b") :]
    blocks, whole = evaluate([blocks, {key: whole[key] for key in blocks}])
    for key, value in blocks.items():
        np.testing.assert_array_equal(value, whole[key])


@pytest.mark.parametrize("name", ["inception_v2", "inception_v3"])
@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"depth_multiplier": 0}, "depth_multiplier must be a positive number, got 0"),
        ({"min_depth": 0}, "min_depth must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_depths(name, keywords, message):
    """A depth that is not positive is named, by the network and by its feature extractor."""
    images = tf.zeros([1, 128, 128, 3])
    for build in (BASES[name][0], getattr(inception, name)):
        with pytest.raises(ValueError, match=f"^{message}"):
            build(images, **keywords)


@pytest.mark.parametrize("name", ["inception_v4", "inception_resnet_v2"])
@pytest.mark.parametrize(
    "keywords",
    [({"create_aux_logits": False}), ({"num_classes": 0})],
    ids=["no auxiliary", "features"],
)
def test_too_small_an_image(name, keywords):
    """Images may be smaller where there is no auxiliary head."""
    message = "inputs must be at least 75 pixels high and wide, got shape"
    with pytest.raises(ValueError, match=message):
        getattr(inception, name)(tf.zeros([2, 74, 299, 3]), **keywords)


@pytest.mark.slow
def test_auxiliary_head_of_small_images():
    """Of a small map the auxiliary head's second kernel takes all."""
    graphs.build("inception_v3", tf.zeros([1, 128, 128, 3]))
    assert tf.global_variables("InceptionV3/AuxLogits/Conv2d_2a_1x1")


@pytest.mark.slow
def test_larger_images():
    """Inception v1 has several logits for a larger image."""
    images = tf.zeros([1, 256, 288, 3])
    logits, _ = graphs.build("inception_v1", images, spatial_squeeze=False)
    assert logits.shape.as_list() == [1, 2, 3, 10]


@pytest.mark.slow
def test_unknown_size():
    """Height and width may be unknown until the graph runs, with the kernels of large images."""
    images = tf.placeholder(tf.float32, [None, None, None, 3])
    assert inception_utils.fitting_kernel(images, 7) == [7, 7]
    logits, _ = graphs.build("inception_v2", images, global_pool=True)
    assert logits.shape.as_list() == [None, 10]


@pytest.mark.parametrize(
    ("keywords", "names"),
    [
        ({"use_batch_norm": False}, {"weights", "biases"}),
        ({"batch_norm_scale": True}, {"weights", "BatchNorm/gamma", "BatchNorm/beta"}),
    ],
    ids=["biases", "scale"],
)
def test_arg_scope_normalization(keywords, names):
    """Convolutions have biases without normalization, and a gamma where it scales."""
    with slim.arg_scope(inception.inception_arg_scope(**keywords)):
        slim.conv2d(tf.zeros([1, 8, 8, 3]), 4, [3, 3], scope="conv")
    assert {v.op.name.removeprefix("conv/") for v in tf.trainable_variables()} == names
