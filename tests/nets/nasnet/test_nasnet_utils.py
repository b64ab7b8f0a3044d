"""The cells of NASNet and PNASNet: operations, wiring, drop path."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.nasnet import nasnet_utils as cells


def run(tensor):
    """Returns the value of a tensor, with freshly initialized variables."""
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(tensor)


def test_halve_takes_even_pixels_and_the_pixels_between_them():
    """One path sees every second pixel from 0, the other every second pixel from 1."""
    image = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    with (
        slim.arg_scope([slim.conv2d], weights_initializer=tf.ones_initializer()),
        slim.arg_scope([slim.batch_norm], is_training=False),
    ):
        halved = run(cells.halve(image, 2))
    np.testing.assert_allclose(halved[0, :, :, 0], [[0, 2], [6, 8]], rtol=1e-3)
    np.testing.assert_allclose(halved[0, :, :, 1], [[4, 0], [0, 0]], rtol=1e-3)


def test_halve_gives_an_odd_filter_to_the_second_path():
    """Five filters are two on the first path and three on the second."""
    halved = cells.halve(tf.zeros([2, 8, 6, 3]), 5)
    assert halved.shape.as_list() == [2, 4, 3, 5]
    widths = {v.op.name: v.shape.as_list()[-1] for v in tf.trainable_variables("path.*weights")}
    assert widths == {"path1_conv/weights": 2, "path2_conv/weights": 3}


@pytest.mark.parametrize(
    ("operation", "stride", "filters", "variables"),
    [
        pytest.param(cells.identity, 1, 4, 0, id="identity"),
        pytest.param(cells.identity, 2, 4, 1, id="identity-halving"),
        pytest.param(cells.identity, 1, 6, 1, id="identity-widening"),
        pytest.param(cells.max_pool, 1, 4, 0, id="max_pool"),
        pytest.param(cells.max_pool, 2, 6, 1, id="max_pool-halving-widening"),
        pytest.param(cells.avg_pool, 2, 4, 0, id="avg_pool-halving"),
        pytest.param(cells.avg_pool, 1, 6, 1, id="avg_pool-widening"),
        pytest.param(cells.separable(3), 1, 4, 4, id="separable"),
        pytest.param(cells.separable(5), 2, 6, 4, id="separable-halving-widening"),
    ],
)
def test_operation(operation, stride, filters, variables):
    """An operation makes the size and channels asked for, with weights only where it needs them."""
    net = operation(tf.zeros([2, 7, 10, 4]), filters, stride)
    assert net.shape.as_list() == [2, -(-7 // stride), -(-10 // stride), filters]
    assert len(tf.trainable_variables(".*weights")) == variables


def test_identity_keeps_the_state():
    """Identity of the right size and width is the state itself."""
    state = tf.zeros([2, 4, 4, 3])
    assert cells.identity(state, 3, 1) is state


_CELL = cells.Cell(
    blocks=(
        (cells.Input(cells.separable(3), 0), cells.Input(cells.identity, 1)),
        (cells.Input(cells.identity, 2), cells.Input(cells.max_pool, 0)),
    ),
    outputs=(2, 3),
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
    previous = None if previous is None else tf.zeros(previous)
    net = cells.build_cell(tf.zeros([2, 8, 8, 6]), previous, _CELL, 6, stride, lambda path: path)
    assert net.shape.as_list() == [2, 8 // stride, 8 // stride, 12]
    matching = {v.op.name.split("/")[0] for v in tf.trainable_variables("pre|path")}
    assert matching - {"prev_bn"} == scopes


def test_cell_projects_an_output_state_of_other_channels():
    """A first input that is part of the output gets the channels of the blocks."""
    cell = _CELL._replace(outputs=(1, 3))
    net = cells.build_cell(tf.zeros([2, 4, 4, 5]), None, cell, 6, 1, lambda path: path)
    assert net.shape.as_list() == [2, 4, 4, 12]
    assert tf.trainable_variables("cell_output/reduction_1/path_conv/weights")


def test_cell_drops_every_path_but_identities():
    """Drop path is applied to the output of each operation that computes something."""
    dropped = []

    def drop(path):
        dropped.append(path)
        return path

    cells.build_cell(tf.zeros([2, 4, 4, 6]), None, _CELL, 6, 1, drop)
    halves = ["/".join(path.op.name.split("/")[:2]) for path in dropped]
    assert halves == ["comb_iter_0/left", "comb_iter_1/right"]


def test_drop_path_zeroes_whole_examples_and_scales_the_others():
    """An example is dropped as a whole or divided by the keep probability."""
    kept = run(cells.drop_path(tf.ones([1000, 2, 3, 4]), 0.8))
    factors = kept[:, 0, 0, 0]
    np.testing.assert_array_equal(kept, np.broadcast_to(factors[:, None, None, None], kept.shape))
    assert set(np.unique(factors)) == {np.float32(0), np.float32(1) / np.float32(0.8)}
    # Four standard deviations of a mean of 1000 draws.
    assert factors.mean() == pytest.approx(1.0, abs=4 * np.sqrt(0.2 / 0.8 / 1000))


def test_drop_path_that_keeps_all_changes_nothing():
    """With probability 1 every example stays as it is."""
    net = np.random.RandomState(0).randn(50, 2, 2, 1).astype(np.float32)
    np.testing.assert_array_equal(run(cells.drop_path(tf.constant(net), 1.0)), net)


@pytest.mark.parametrize(
    ("keep_prob", "depth", "progress", "expected"),
    [
        pytest.param(0.6, 1.0, 1.0, 0.6, id="last-cell-at-the-end"),
        pytest.param(0.6, 1.0, 0.0, 1.0, id="start"),
        pytest.param(0.6, 0.5, 1.0, 0.8, id="middle-cell"),
        pytest.param(0.6, 0.5, 0.5, 0.9, id="middle-of-training"),
        pytest.param(1.0, 1.0, 1.0, 1.0, id="no-drops"),
    ],
)
def test_scheduled_keep_prob(keep_prob, depth, progress, expected):
    """Paths are dropped more often the deeper the cell and the further the training."""
    assert cells.scheduled_keep_prob(keep_prob, depth, progress) == pytest.approx(expected)
