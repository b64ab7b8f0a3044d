"""docs/collections.md is true: what functions read and add is traced in the graph."""

import contextlib
import re
import sys
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops

from model_deploy import (
    DeploymentConfig,
    average_gradients,
    create_clones,
    deploy,
    describe,
    inputs,
    optimize_clones,
    random_by_step,
    slim,
    split_batch,
    train,
    training,
)
from tests import harness

DOCUMENT = (Path(__file__).parents[1] / "docs" / "collections.md").read_text()
NAMES = {key: name for name, key in vars(tf.GraphKeys).items() if name.isupper() and name[0] != "_"}
# Collections that TensorFlow itself reads all the time, when it makes a variable say.
_ALWAYS_READ = {
    "GLOBAL_VARIABLES",
    "LOCAL_VARIABLES",
    "TRAINABLE_RESOURCE_VARIABLES",
    "TRAINABLE_VARIABLES",
    "TRAIN_OP",
}
# Python's view of conditions of TensorFlow 1, which moving averages have with `--v1`.
_CONTEXTS = {"COND_CONTEXT", "WHILE_CONTEXT"}
TWO = DeploymentConfig(num_clones=2, clone_on_cpu=True)
ALL_REDUCE = DeploymentConfig(num_clones=2, clone_on_cpu=True, all_reduce=True)
REPLICAS = DeploymentConfig(num_replicas=2, num_ps_tasks=1, clone_on_cpu=True)


def _row(function):
    """Names of the collections that a row lists as read and as added to."""
    [row] = re.findall(rf"^\| {re.escape(function)} \|(.*)\|(.*)\|$", DOCUMENT, re.MULTILINE)
    return [set(re.findall(r"`([A-Z_]+)`", cell)) for cell in row]


def _model_fn():
    net = slim.batch_norm(tf.ones([4, 3]), is_training=True)
    net = slim.fully_connected(net, 2, weights_regularizer=slim.l2_regularizer(0.1))
    tf.losses.mean_squared_error(tf.ones([4, 2]), net)
    tf.summary.scalar("sum", tf.reduce_sum(net))


def _in_model_fn():
    frame = sys._getframe()
    while frame is not None and frame.f_code is not _model_fn.__code__:
        frame = frame.f_back
    return frame is not None


@contextlib.contextmanager
def _traced(monkeypatch, read, added):
    """Collects the names that are read and added to, by others than the model function."""

    def note(method, names):
        original = getattr(ops.Graph, method)

        def noted(graph, key, *args):
            known = isinstance(key, str) and key in NAMES and NAMES[key] not in _CONTEXTS
            if known and not _in_model_fn():
                names.add(NAMES[key])
            return original(graph, key, *args)

        monkeypatch.setattr(ops.Graph, method, noted)

    note("get_collection", read)
    note("get_collection_ref", read)
    note("add_to_collection", added)
    before = len(tf.get_default_graph().get_collection(tf.GraphKeys.TRAIN_OP))
    yield
    monkeypatch.undo()
    if len(tf.get_default_graph().get_collection(tf.GraphKeys.TRAIN_OP)) > before:
        added.add("TRAIN_OP")  # TensorFlow appends to the list itself


def _deploy(config=TWO, **options):
    optimizer = harness.momentum()
    return deploy(config, _model_fn, optimizer=optimizer, **options)


def _batches(function):
    return function(inputs.get_dataset("digits", "test"), batch_size=4, preprocessing="lenet")


def _gradients():
    variable = tf.get_variable("variable", [2])
    return [[(tf.ones([2]), variable)], [(tf.ones([2]), variable)]]


# The first column of a row, what is made before, and what is traced.
CASES = [
    ("`inputs.train_batches`", None, lambda _: _batches(inputs.train_batches)),
    ("`inputs.eval_batches`", None, lambda _: _batches(inputs.eval_batches)),
    ("`create_clones`", None, lambda _: create_clones(TWO, _model_fn)),
    (
        "`optimize_clones`",
        lambda: create_clones(TWO, _model_fn),
        lambda clones: optimize_clones(clones, harness.sgd()),
    ),
    ("`deploy`", None, lambda _: _deploy()),
    (
        "`training.moving_average_update`",
        lambda: (_model_fn(), tf.train.get_or_create_global_step())[1],
        lambda step: training.moving_average_update(0.9, step)(),
    ),
    ("`training.variables_to_train`", _model_fn, lambda _: training.variables_to_train(None)),
    (
        "`training.add_classification_losses`",
        None,
        lambda _: training.add_classification_losses(tf.ones([2, 3]), tf.zeros([2], tf.int64)),
    ),
    (
        "`random_by_step`",
        None,
        lambda _: random_by_step(lambda: tf.nn.dropout(tf.ones([3]), rate=0.5, seed=1))(),
    ),
    (
        "`split_batch`, `average_gradients`, `describe`",
        None,
        lambda _: split_batch(tf.ones([4]), 2),
    ),
    ("`split_batch`, `average_gradients`, `describe`", _gradients, average_gradients),
    ("`split_batch`, `average_gradients`, `describe`", _deploy, describe),
]


@pytest.mark.parametrize(("function", "prepare", "run"), CASES)
def test_rows_are_true(function, prepare, run, monkeypatch):
    """A function reads and adds to the collections in its row, and to no others."""
    prepared = prepare() if prepare else None
    read, added = set(), set()
    with _traced(monkeypatch, read, added):
        run(prepared)
    row_read, row_added = _row(function)
    if function == "`training.moving_average_update`":
        row_read.remove("TRAINABLE_VARIABLES")  # the model has model variables
    assert row_read <= read
    assert read - _ALWAYS_READ <= row_read
    assert added == row_added


@pytest.mark.parametrize(
    ("function", "config", "options"),
    [
        pytest.param("`deploy`, all-reduce", ALL_REDUCE, {}, id="all_reduce"),
        pytest.param(
            "`deploy`, synchronous replicas",
            REPLICAS,
            {"replicas_to_aggregate": 2},
            id="synchronous",
        ),
    ],
)
def test_other_ways_to_deploy(function, config, options, monkeypatch):
    """All-reduce and synchronous replicas have what their rows add to that of `deploy`."""
    read, added = set(), set()
    with _traced(monkeypatch, read, added):
        _deploy(config, **options)
    (row_read, row_added), (also_read, also_added) = _row("`deploy`"), _row(function)
    assert row_read | also_read <= read
    assert read - _ALWAYS_READ <= row_read | also_read
    assert added == row_added | also_added


def test_train_reads(tmp_path, monkeypatch):
    """Training reads the collections in its row, and adds to none."""
    model = _deploy()
    read, added = set(), set()
    with _traced(monkeypatch, read, added):
        train(model, tmp_path, max_steps=1)
    row_read, row_added = _row("`train`")
    assert row_read <= read  # the events hold the graph, with all collections
    assert added == row_added == set()


def test_all_own_collections_are_listed():
    """The notes that the document lists are those whose keys the code has."""
    root = Path(__file__).parents[1]
    code = "".join(
        path.read_text()
        for folder in ("model_deploy", "nets")
        for path in root.glob(f"{folder}/**/*.py")
    )
    key = r"""\(["'](model_deploy|nets)["'], ["']([a-z_]+)["']\)"""
    assert sorted(re.findall(key, DOCUMENT)) == sorted(set(re.findall(rf"= {key}", code)))
