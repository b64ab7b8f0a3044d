"""The parts of NASNet and PNASNet: layouts, reduction, drop path, cells."""

import contextlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.nasnet import nasnet_utils as cells
from tests.nets.values import evaluate_initial

_WITH_A_LAYOUT = [
    *(slim.avg_pool2d, slim.max_pool2d, slim.conv2d, slim.separable_conv2d, slim.batch_norm),
    *(cells.factorized_reduction, cells.global_avg_pool),
    *(cells.get_channel_index, cells.get_channel_dim),
]


@contextlib.contextmanager
def layout(data_format="NHWC"):
    """Sets the layout of all feature maps, as the networks do."""
    with cells.arg_scope(_WITH_A_LAYOUT, data_format=data_format):
        yield


@pytest.mark.parametrize(("data_format", "index", "channels"), [("NHWC", 3, 40), ("NCHW", 1, 20)])
def test_layouts(data_format, index, channels):
    """A layout, given or from the arg scope, tells which axis the channels are; the others are
    averaged by a global pooling.
    """
    shape = [10, 20, 30, 40]
    assert cells.get_channel_index(data_format) == index
    assert cells.get_channel_dim(shape, data_format) == channels
    with layout(data_format):
        assert cells.get_channel_index() == index
        assert cells.get_channel_dim(tf.zeros(shape).shape) == channels
    value = np.random.RandomState(0).randn(5, 4, 3, 6).astype(np.float32)
    actual = evaluate_initial(cells.global_avg_pool(tf.constant(value), data_format))
    axes = (1, 2) if data_format == "NHWC" else (2, 3)
    np.testing.assert_allclose(actual, value.mean(axes), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(cells.get_channel_index, id="index"),
        pytest.param(lambda: cells.get_channel_dim([1, 2, 3, 4]), id="dim"),
        pytest.param(lambda: cells.global_avg_pool(tf.zeros([1, 2, 3, 4])), id="pool"),
        pytest.param(
            lambda: cells.factorized_reduction(tf.zeros([1, 2, 3, 4]), 4, 2), id="reduction"
        ),
    ],
)
def test_no_layout(call):
    """Where no arg scope sets a layout, that is said."""
    with pytest.raises(ValueError, match=r"^data_format must be one of NCHW, NHWC, got 'null'"):
        call()


def test_shapes_that_are_no_feature_maps():
    """Another number of axes is named with the shape."""
    with layout():
        with pytest.raises(ValueError, match=r"^shape must have 4 axes, got \[1, 2\]"):
            cells.get_channel_dim([1, 2])
        with pytest.raises(ValueError, match=r"^x must have rank 4, got shape \(1, 2\)"):
            cells.global_avg_pool(tf.zeros([1, 2]))


@pytest.mark.parametrize(
    ("data_format", "filters", "stride", "shape", "widths"),
    [
        # The odd filter goes to the second path.
        ("NHWC", 5, 2, [2, 4, 3, 5], {"path1_conv/weights": 2, "path2_conv/weights": 3}),
        ("NHWC", 5, 1, [2, 8, 6, 5], {"path_conv/weights": 5}),
        ("NCHW", 4, 2, [2, 4, 4, 3], {"path1_conv/weights": 2, "path2_conv/weights": 2}),
        ("NCHW", 4, 1, [2, 4, 8, 6], {"path_conv/weights": 4}),
    ],
)
def test_factorized_reduction(data_format, filters, stride, shape, widths):
    """With a stride there are two paths, which halve height and width in any layout."""
    images = tf.zeros([2, 8, 6, 3] if data_format == "NHWC" else [2, 3, 8, 6])
    with layout(data_format):
        net = cells.factorized_reduction(images, filters, stride)
    assert net.shape.as_list() == shape
    found = {v.op.name: v.shape.as_list()[-1] for v in tf.trainable_variables("path.*weights")}
    assert found == widths


def small_cell(used=(1, 1, 0, 0), keep_prob=1.0, total=4):
    """Returns a cell of two blocks with six filters."""
    return cells.NasNetABaseCell(
        num_conv_filters=3,
        operations=["separable_3x3_2", "none", "none", "max_pool_3x3"],
        used_hiddenstates=used,
        hiddenstate_indices=[0, 1, 2, 0],
        drop_path_keep_prob=keep_prob,
        total_num_cells=total,
        total_training_steps=100,
    )


def build(cell, shape, previous=None, **keywords):
    """Builds a cell twice as wide as its filters on zeros."""
    previous = None if previous is None else tf.zeros(previous)
    with layout():
        return cell(
            tf.zeros(shape), scope="cell", filter_scaling=2, prev_layer=previous, **keywords
        )


@pytest.mark.parametrize(
    ("previous", "stride", "scopes"),
    [
        pytest.param(None, 1, set(), id="none"),
        pytest.param([2, 8, 8, 6], 1, set(), id="fits"),
        pytest.param([2, 8, 8, 5], 1, {"prev_1x1"}, id="other-channels"),
        pytest.param([2, 16, 16, 6], 1, {"path1_conv", "path2_conv"}, id="twice-the-size"),
        pytest.param([2, 15, 16, 6], 2, {"path1_conv", "path2_conv"}, id="halving"),
    ],
)
def test_cell_matches_the_output_before_the_last(previous, stride, scopes):
    """The second input gets the size and channels of the cell; the cell halves with stride 2."""
    net = build(small_cell(), [2, 8, 8, 6], previous, stride=stride)
    assert net.shape.as_list() == [2, 8 // stride, 8 // stride, 12]
    assert net.op.name == "cell/cell_output/concat"
    matching = {v.op.name.split("/")[1] for v in tf.trainable_variables("cell/(prev|path)")}
    assert {scope for scope in matching if not scope.endswith("_bn")} == scopes


def test_cell_projects_an_output_state_of_other_channels():
    """A first input that is part of the output gets the channels of the blocks."""
    net = build(small_cell(used=(1, 0, 1, 0)), [2, 4, 4, 5])
    assert net.shape.as_list() == [2, 4, 4, 12]
    assert tf.trainable_variables("cell/cell_output/reduction_1/path_conv/weights")


def test_cell_drops_every_path_but_those_without_an_operation(monkeypatch):
    """Drop path is applied to the output of each operation, as the cell's depth and step say."""
    dropped = []

    def record(path, keep_prob):
        dropped.append((path.op.name, keep_prob))
        return path

    monkeypatch.setattr(cells, "drop_path", record)
    step = tf.placeholder(tf.int64, [])
    build(small_cell(keep_prob=0.6), [2, 4, 4, 6], cell_num=1, current_step=step)
    assert ["/".join(name.split("/")[1:3]) for name, _ in dropped] == [
        "comb_iter_0/left",
        "comb_iter_1/right",
    ]
    with tf.Session() as sess:
        keeps = [sess.run([keep for _, keep in dropped], {step: at}) for at in (0, 50, 100, 900)]
    # The second of four cells drops half of what the last one does.
    np.testing.assert_allclose(keeps, [[1, 1], [0.9, 0.9], [0.8, 0.8], [0.8, 0.8]], rtol=1e-6)


def test_cell_without_a_number_drops_nothing():
    """Where paths are dropped a cell must know how deep it is."""
    with pytest.raises(ValueError, match=r"^cell_num must be at least 0 where .*, got -1"):
        build(small_cell(keep_prob=0.6), [2, 4, 4, 6])


def test_drop_path_zeroes_whole_examples_and_scales_the_others():
    """An example is dropped as a whole or divided by the keep probability."""
    kept = evaluate_initial(cells.drop_path(tf.ones([1000, 2, 3, 4]), 0.8))
    factors = kept[:, 0, 0, 0]
    np.testing.assert_array_equal(kept, np.broadcast_to(factors[:, None, None, None], kept.shape))
    assert set(np.unique(factors)) == {np.float32(0), np.float32(1) / np.float32(0.8)}
    # Four standard deviations of a mean of 1000 draws.
    assert factors.mean() == pytest.approx(1.0, abs=4 * np.sqrt(0.2 / 0.8 / 1000))


def test_drop_path_that_drops_nothing():
    """With probability 1 every example stays as it is, and without training, by the arg scope or
    an argument, the map itself is returned.
    """
    value = np.random.RandomState(0).randn(50, 2, 2, 1).astype(np.float32)
    net = tf.constant(value)
    np.testing.assert_array_equal(evaluate_initial(cells.drop_path(net, 1.0)), value)
    assert cells.drop_path(net, 0.5, is_training=False) is net
    with cells.arg_scope([cells.drop_path], is_training=False):
        assert cells.drop_path(net, 0.5) is net
