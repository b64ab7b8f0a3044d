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


@pytest.mark.slow
@pytest.mark.parametrize("name", BASES)
def test_final_endpoint(name):
    """A feature extractor stops at each of its end points, with those before it, as large as in
    the whole network; an unknown one is named with all, before anything is built.
    """
    base, shapes = BASES[name][0], dict(reference.load(name)["end_points"])
    names = names_of(name)
    last = "Mixed_6a" if name == "inception_v4" else names[-1]  # less to build
    for final_endpoint in (names[0], names[3], last if "resnet" not in name else "Mixed_5b"):
        with tf.Graph().as_default(), slim.arg_scope(inception.inception_arg_scope()):
            images = tf.zeros(reference.load(name)["input"]["shape"])
            net, end_points = base(images, final_endpoint=final_endpoint, scope="base")
        assert list(end_points) == names[: names.index(final_endpoint) + 1]
        assert net is end_points[final_endpoint]
        assert graphs.static_shapes(end_points) == [[key, shapes[key]] for key in end_points]
    message = "^final_endpoint must be one of Conv2d_1a.*, got 'Mixed_9z'"
    with pytest.raises(ValueError, match=message) as error:
        base(tf.zeros([1, 96, 96, 3]), final_endpoint="Mixed_9z")
    assert all(name in str(error.value) for name in names)
    assert tf.global_variables() == []


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inception_v3", "inception_v4"])
def test_auxiliary_logits_are_optional(name):
    """Without its auxiliary head a network takes images down to 75 x 75."""
    logits, end_points = graphs.build(name, tf.zeros([1, 75, 75, 3]), create_aux_logits=False)
    assert logits.shape.as_list() == [1, 10]
    assert "AuxLogits" not in end_points
    assert not tf.global_variables(".*AuxLogits")


@pytest.mark.parametrize("name", ["inception_v4", "inception_resnet_v2"])
@pytest.mark.parametrize(
    ("side", "keywords", "smallest"),
    [(106, {}, 107), (74, {"create_aux_logits": False}, 75), (74, {"num_classes": 0}, 75)],
    ids=["auxiliary", "no auxiliary", "features"],
)
def test_too_small_an_image(name, side, keywords, smallest):
    """The auxiliary head needs larger images than the rest of the network."""
    message = f"inputs must be at least {smallest} pixels high and wide, got shape"
    with pytest.raises(ValueError, match=message):
        getattr(inception, name)(tf.zeros([2, side, 299, 3]), **keywords)


@pytest.mark.slow
def test_auxiliary_head_needs_a_known_size():
    """The auxiliary head cannot be built for images of unknown size."""
    inputs = tf.placeholder(tf.float32, [2, None, 299, 3])
    message = r"create_aux_logits must be False .*, got True and a feature map of shape \(2, None,"
    with pytest.raises(ValueError, match=message):
        graphs.build("inception_resnet_v2", inputs)


@pytest.mark.slow
def test_auxiliary_kernel_follows_the_image():
    """The auxiliary head's second kernel is as large as its map, up to 5 x 5."""
    names = {}
    for side in (128, 299, 400):
        with tf.Graph().as_default():
            graphs.build("inception_v3", tf.zeros([1, side, side, 3]), spatial_squeeze=False)
            scopes = [v.op.name.split("/")[2] for v in tf.global_variables("InceptionV3/AuxLogits")]
            names[side] = next(scope for scope in scopes if scope.startswith("Conv2d_2a"))
    assert names == {128: "Conv2d_2a_1x1", 299: "Conv2d_2a_5x5", 400: "Conv2d_2a_5x5"}


@pytest.mark.slow
def test_larger_images_need_pooling_or_no_squeeze():
    """Inception v1 has several logits for a larger image, which cannot be squeezed."""
    images = tf.zeros([1, 256, 288, 3])
    with pytest.raises(ValueError, match=r"^spatial_squeeze needs logits of 1 x 1 pixel, got"):
        graphs.build("inception_v1", images)
    with tf.Graph().as_default():
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


def test_one_module_for_all_versions():
    """`from nets import inception` has the networks that old code takes from it."""
    for name in ("inception_v1", "inception_v2", "inception_v3", "inception_v4"):
        assert getattr(inception, name).default_image_size in {224, 299}
        assert getattr(inception, f"{name}_arg_scope") is inception.inception_arg_scope
    assert inception.inception_resnet_v2.default_image_size == 299
