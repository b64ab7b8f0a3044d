"""Rows that a model gathers on a parameter server travel in one message each way."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy
from tests import clusters, harness
from tests.goldens import NUM_EXAMPLES, Golden, LogicalDevices, formula

_TABLES = 3


def _model_fn(features, labels):
    """A sum of rows of several tables, of which some are as wide; ids of each are a column."""
    total = 0.0
    for i in range(_TABLES):
        table = tf.get_variable(
            f"table_{i}", [9, 4 - i // 2], initializer=formula, use_resource=True
        )
        total += tf.reduce_sum(tf.nn.embedding_lookup(table, features[:, i]), 1)
    tf.losses.mean_squared_error(labels, total)


_IDS = (np.arange(NUM_EXAMPLES)[:, None] * [1, 2, 5] % 9).astype(np.int64)
_GOLDEN = Golden("tables", _IDS, np.cos(np.arange(NUM_EXAMPLES)).astype(np.float32), _model_fn)


def _crossing(graph, source, destination):
    """Types of tensors that cross from one job to another, but for an optimizer's scalars."""
    found = {}
    for op in graph.get_operations():
        for tensor in op.inputs:
            crosses = f"job:{destination}" in op.device and f"job:{source}" in tensor.op.device
            if crosses and tensor.shape.rank != 0:
                found[tensor.name] = tensor.dtype
    return list(found.values())


def test_all_tables_of_a_server_share_messages():
    """One message of ids and one of gradients go to the server; rows come by width."""
    config = LogicalDevices(num_ps_tasks=2)
    run = harness.Replica(config, _GOLDEN, harness.momentum)
    by_server = {}
    for variable in run.variables.values():
        if variable.op.name.startswith("table") and "Momentum" not in variable.op.name:
            by_server.setdefault(variable.device, []).append(variable)
    assert sorted(map(len, by_server.values())) == [1, 2]
    to_servers = _crossing(run.graph, "worker", "ps")
    # Of the server with two tables: their ids; their gradients in one pack.  Of the other one: its
    # ids and its gradient.
    assert to_servers.count(tf.int64) == 2
    assert to_servers.count(tf.float32) == 2
    harness.assert_same(run(*clusters.workers(1)), harness.one_clone(_GOLDEN, harness.momentum))


@pytest.mark.parametrize("fields", [{"num_clones": 2}, {"accumulate_steps": 2}], ids=str)
def test_clones_train_as_one(fields):
    """Clones and parts whose look-ups share messages end where one clone ends."""
    run = harness.Replica(LogicalDevices(num_ps_tasks=2, **fields), _GOLDEN, harness.momentum)
    harness.assert_same(run(*clusters.workers(1)), harness.one_clone(_GOLDEN, harness.momentum))


def test_a_look_up_of_what_another_one_found():
    """Ids that are computed from rows wait for these, and are sent by themselves."""

    def model_fn():
        first = tf.get_variable("first", [4, 2], initializer=formula, use_resource=True)
        second = tf.get_variable("second", [4, 2], initializer=formula, use_resource=True)
        rows = tf.nn.embedding_lookup(first, tf.constant([0, 1]))
        ids = tf.cast(tf.abs(rows[:, 0]) * 4, tf.int32)
        tf.losses.add_loss(tf.reduce_sum(rows * tf.nn.embedding_lookup(second, ids)))

    losses = []
    for fields in ({}, {"num_ps_tasks": 1}):
        [target] = clusters.workers(1) if fields else [""]
        with tf.Graph().as_default():
            model = deploy(LogicalDevices(**fields), model_fn, optimizer=harness.sgd())
            found, _ = harness.run_steps(model, steps=2, target=target)
            losses.append(found)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
