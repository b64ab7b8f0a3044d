"""What NASNet and PNASNet share: end points, drop path schedule, bad input."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from model_deploy import slim
from nets import nets_factory
from nets.nasnet import nasnet, nasnet_utils
from nets.nasnet.cell_config import CellNetworkConfig
from tests.nets import graphs, reference
from tests.nets.values import evaluate_initial, variable_names

# Network -> side of an image that its smallest training graph takes. Each cell and each stem once.
SIDES = {"nasnet_cifar": 12, "nasnet_mobile": 67, "pnasnet_mobile": 67}
slow = pytest.mark.slow
each = pytest.mark.parametrize("name", ["nasnet_cifar", "pnasnet_mobile"])
imagenet = pytest.mark.parametrize("name", ["nasnet_mobile", "pnasnet_mobile"])
DROPS = {"drop_path_keep_prob": 0.5}


def build(name, num_classes=10, settings=None, images=None, side=None, **keywords):
    """Builds a network of three narrow cells, on the reference input if on no other."""
    if images is None:
        side = side or SIDES[name]
        images = tf.constant(reference.images([2, side, side, 3]))
    config = CellNetworkConfig(3, 8, total_training_steps=100, **(settings or {}))
    return graphs.build(name, images, num_classes, config=config, **keywords)


@slow
def test_final_endpoint():
    """Building stops at the final end point, and nothing after it is made; the last of all are
    probabilities.
    """
    with tf.Graph().as_default():
        predictions, everything = build("nasnet_mobile", final_endpoint="Predictions")
        all_variables = variable_names()
        np.testing.assert_allclose(evaluate_initial(predictions).sum(axis=1), [1, 1], rtol=1e-5)
    keys = list(everything)
    net, end_points = build("nasnet_mobile", final_endpoint="Cell_1")
    assert list(end_points) == keys[: keys.index("Cell_1") + 1]
    assert net is end_points["Cell_1"]
    assert net.shape == everything["Cell_1"].shape
    built = variable_names()
    assert built == all_variables[: len(built)] != all_variables


@imagenet
@pytest.mark.parametrize(("final_endpoint", "num_classes"), [("AuxLogits", 10), ("Logits", 0)])
def test_final_endpoint_rejects(name, final_endpoint, num_classes):
    """A final end point that this network does not come to is named."""
    message = f"final_endpoint must be one of .*Cell_0, .*, got '{final_endpoint}'"
    with pytest.raises(ValueError, match=message):
        build(name, num_classes, final_endpoint=final_endpoint)


@each
def test_images_of_unknown_size(name):
    """The wiring depends on height and width, so that they have to be known."""
    images = tf.placeholder(tf.float32, [None, None, 96, 3])
    message = r"images must have a known height and width, got shape \(None, None, 96, 3\)"
    with pytest.raises(ValueError, match=message):
        graphs.build(name, images)


@each
def test_too_small_for_the_auxiliary_head(name):
    """Only a training graph with the auxiliary head needs more than the smallest image, and not one
    that ends before it, or without classes.
    """
    side = {"nasnet_cifar": 8}.get(name, 66)
    message = f"images must be at least {side + 1} pixels high and wide, got shape"
    with pytest.raises(ValueError, match=message):
        build(name, side=side, is_training=True)
    if name != "nasnet_cifar":  # which takes no end point
        build(name, side=40, is_training=True, final_endpoint="Cell_0")
    smallest = nets_factory.get_network(name).function.inputs.smallest_for
    training = {"num_classes": 10, "is_training": True, "final_endpoint": None, "config": None}
    without_head = CellNetworkConfig(3, 8, use_aux_head=False)
    assert smallest(training) == side + 1
    for change in ({"num_classes": 0}, {"is_training": False}, {"config": without_head}):
        assert smallest({**training, **change}) <= side


@slow
def test_images_that_are_not_square():
    """Height and width are halved on their own, odd ones upwards."""
    images = tf.constant(reference.images([2, 75, 100, 3]))
    net, end_points = build("nasnet_cifar", 0, images=images)
    last = end_points["Cell_2"].shape.as_list()
    assert last[1:3] == [19, 25]
    assert net.shape.as_list() == [2, last[3]]


@slow
def test_drop_path(monkeypatch):
    """Cell `i` of `n` keeps `1 - i / n * (1 - p)` at the end of the schedule, and from then on; at
    step 0 nothing is dropped, later two runs of one batch of any size differ.

    A global step that exists is taken. Evaluation beside it drops nothing and makes no variable.
    """
    name, cells, keeps, drop_path = "nasnet_cifar", 5, [], nasnet_utils.drop_path

    def record(net, keep_prob):
        keeps.append(keep_prob)
        return drop_path(net, keep_prob)

    monkeypatch.setattr(nasnet_utils, "drop_path", record)
    step = tf.train.get_or_create_global_step()
    images = tf.placeholder(tf.float32, [None, SIDES[name], SIDES[name], 3])
    logits, _ = build(name, settings=DROPS, images=images, is_training=True)
    assert tf.get_collection(tf.GraphKeys.GLOBAL_STEP) == [step]
    before, recorded = tf.global_variables(), len(keeps)
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        evaluated, _ = build(name, settings=DROPS, images=images)
    assert (tf.global_variables(), len(keeps)) == (before, recorded)
    with graphs.session(tf.get_default_graph()) as sess:
        sess.run(tf.global_variables_initializer())
        for value, share, batch in ((0, 0.0, 1), (50, 0.5, 3), (100, 1.0, 3), (10_000, 1.0, 3)):
            sess.run(step.assign(value))
            feed = {images: reference.images([batch, SIDES[name], SIDES[name], 3])}
            first, again, actual = sess.run(logits, feed), sess.run(logits, feed), sess.run(keeps)
            assert len(first) == batch
            assert np.allclose(first, again) == (value == 0)
            assert actual == sorted(actual, reverse=True)
            expected = [1 - share * index / cells * 0.5 for index in range(cells, 0, -1)]
            np.testing.assert_allclose(np.unique(actual), np.unique(expected), rtol=1e-6)
        np.testing.assert_array_equal(sess.run(evaluated, feed), sess.run(evaluated, feed))


@slow
def test_own_steps():
    """Without a global step one is made, in the first cell; with `current_step` and in evaluation
    none is.
    """
    cell = {"settings": DROPS, "final_endpoint": "Cell_0"}
    build("nasnet_mobile", **cell)
    assert tf.train.get_global_step() is None
    with tf.Graph().as_default():
        build("nasnet_mobile", is_training=True, **cell)
        made = tf.train.get_global_step().op.name
        assert made == "cell_stem_0/comb_iter_0/left/global_step"
    step = tf.placeholder_with_default(0.0, [])
    with tf.variable_scope("own"):
        net, _ = build("nasnet_mobile", is_training=True, current_step=step, **cell)
    assert tf.train.get_global_step() is None
    with graphs.session(tf.get_default_graph()) as sess:
        sess.run(tf.global_variables_initializer())
        start, again, end = (sess.run(net, feed) for feed in ({}, {}, {step: 100}))
    np.testing.assert_array_equal(start, again)
    assert not np.allclose(start, end)


@slow
def test_config_overrides_one_setting():
    """Code that changes a setting of the published config gets the rest of it as published."""
    changed = nasnet.large_imagenet_config()
    changed.set_hparam("num_conv_filters", 24)
    assert nasnet.large_imagenet_config().num_conv_filters == 168  # the next one is as published
    with slim.arg_scope(nasnet.nasnet_large_arg_scope()):
        _, end_points = nasnet.build_nasnet_large(
            tf.zeros([1, 64, 64, 3]), 5, is_training=False, config=changed, final_endpoint="Cell_1"
        )
    assert end_points["Cell_1"].shape.as_list() == [1, 8, 8, 6 * 24]
    assert tf.trainable_variables("conv0/weights")[0].shape.as_list() == [3, 3, 3, 96]


@slow
def test_bounded_activation_and_channels_first():
    """With bounded activations no value that a cell passes on is beyond 6, and no ReLU is left.

    With NCHW maps have their channels first, and the values of NHWC on the same variables.
    """

    def small(name, shape):
        return reference.weights(name, shape) * (1.0 if "variance" in name else 0.1)

    found, config = {}, tf.ConfigProto()
    # The CPU need not have kernels for NCHW.
    config.graph_options.rewrite_options.cpu_layout_conversion = RewriterConfig.NCHW_TO_NHWC
    for data_format in ("NHWC", "NCHW"):
        settings = {"use_bounded_activation": True, "data_format": data_format}
        with tf.Graph().as_default() as graph, tf.Session(config=config) as sess:
            _, end_points = build("nasnet_mobile", settings=settings, final_endpoint="Cell_0")
            assert {"Relu", "Relu6"} & {op.type for op in graph.get_operations()} == {"Relu6"}
            graphs.load_weights(sess, small)
            cells = sess.run({key: value for key, value in end_points.items() if "Cell" in key})
            variables = [(v.op.name, v.shape.as_list()) for v in tf.global_variables()]
        found[data_format] = cells, variables
    (last, variables), (first, same) = found.values()
    assert same == variables
    for key, value in last.items():
        assert np.abs(value).max() <= 6
        assert reference.relative_difference(first[key].transpose(0, 2, 3, 1), value) < 1e-4, key
