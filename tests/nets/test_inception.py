"""The feature extractors of Inception v1 to v3, and their head."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import inception, inception_utils
from tests.nets import graphs, reference
from tests.nets.values import evaluate, variable_names

BASES = {
    "inception_v1": inception.inception_v1_base,
    "inception_v2": inception.inception_v2_base,
    "inception_v3": inception.inception_v3_base,
}
ENDS = {"inception_v1": "Mixed_5c", "inception_v2": "Mixed_5c", "inception_v3": "Mixed_7c"}


def names_of(name):
    """Returns the names of a feature extractor's end points, in order."""
    names = [key for key, _ in reference.load(name)["end_points"]]
    return names[: names.index(ENDS[name]) + 1]


@pytest.mark.slow
@pytest.mark.parametrize("name", BASES)
def test_final_endpoint(name):
    """A feature extractor stops at each of its end points, with those before it."""
    names = names_of(name)
    for count in (1, 4, len(names)):
        with tf.Graph().as_default(), slim.arg_scope(inception.inception_arg_scope()):
            images = tf.zeros([1, 96, 96, 3])
            net, end_points = BASES[name](images, final_endpoint=names[count - 1], scope="base")
            assert list(end_points) == names[:count]
            assert net is end_points[names[count - 1]]


@pytest.mark.parametrize("name", ["inception_v1", "inception_v2"])
def test_without_the_root_block(name):
    """Without its root block a feature extractor goes on from a map of stride 8 to the same end."""
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        _, whole = BASES[name](
            tf.constant(reference.images([1, 64, 64, 3])), "Mixed_4b", scope="base"
        )
        names = variable_names()
        _, blocks = BASES[name](
            whole["MaxPool_3a_3x3"], "Mixed_4b", include_root_block=False, scope="base"
        )
    assert variable_names() == names
    assert list(blocks) == list(whole)[list(whole).index("Mixed_3b") :]
    blocks, whole = evaluate([blocks, {key: whole[key] for key in blocks}])
    for key, value in blocks.items():
        np.testing.assert_array_equal(value, whole[key])


@pytest.mark.parametrize("name", BASES)
def test_unknown_final_endpoint(name):
    """An unknown end point is named with all that there are, before anything is built."""
    message = f"^final_endpoint must be one of {', '.join(names_of(name))}, got 'Mixed_9z'"
    with pytest.raises(ValueError, match=message):
        BASES[name](tf.zeros([1, 96, 96, 3]), final_endpoint="Mixed_9z")
    assert tf.global_variables() == []


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
    for build in (BASES[name], getattr(inception, name)):
        with pytest.raises(ValueError, match=f"^{message}"):
            build(images, **keywords)


@pytest.mark.slow
def test_auxiliary_logits_are_optional():
    """Without its auxiliary head Inception v3 takes images down to 75 x 75."""
    images = tf.zeros([1, 75, 75, 3])
    logits, end_points = graphs.build("inception_v3", images, create_aux_logits=False)
    assert logits.shape.as_list() == [1, 10]
    assert "AuxLogits" not in end_points


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


@pytest.mark.parametrize("use_batch_norm", [True, False])
def test_arg_scope_normalization(use_batch_norm):
    """Convolutions are either normalized or have biases."""
    with slim.arg_scope(
        inception.inception_arg_scope(use_batch_norm=use_batch_norm, batch_norm_scale=True)
    ):
        slim.conv2d(tf.zeros([1, 8, 8, 3]), 4, [3, 3], scope="conv")
    names = {v.op.name.removeprefix("conv/") for v in tf.global_variables()}
    statistics = {f"BatchNorm/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance")}
    assert names == {"weights", *(statistics if use_batch_norm else {"biases"})}


def test_one_module_for_all_versions():
    """`from nets import inception` has the networks that old code takes from it."""
    for name in ("inception_v1", "inception_v2", "inception_v3", "inception_v4"):
        assert getattr(inception, name).default_image_size in {224, 299}
        assert getattr(inception, f"{name}_arg_scope") is inception.inception_arg_scope
    assert inception.inception_resnet_v2.default_image_size == 299
