"""Where ops really run in a cluster of 2 workers and 2 parameter servers."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, placement, slim
from tests import clusters
from tests.goldens import LogicalDevices

PS = ["/job:ps/task:0/device:CPU:0", "/job:ps/task:1/device:CPU:0"]


@pytest.fixture(scope="module")
def workers():
    """Targets of the two workers."""
    return clusters.workers(2)


def _model_fn():
    """Weights, batch-norm statistics and an embedding: every kind of variable slim makes."""
    table = slim.model_variable("table", [8, 4], initializer=tf.ones_initializer())
    net = tf.nn.embedding_lookup(table, tf.constant([0, 1, 2, 1, 5, 7]))
    net = slim.fully_connected(net, 3, normalizer_fn=slim.batch_norm, scope="hidden")
    net = slim.fully_connected(net, 1, activation_fn=None, scope="out")
    tf.losses.mean_squared_error(tf.ones([6, 1]), net)


def _deploy(replica_id, strategy):
    config = LogicalDevices(
        num_clones=2, replica_id=replica_id, num_replicas=2, num_ps_tasks=2, ps_strategy=strategy
    )
    return deploy(config, _model_fn, optimizer=tf.train.AdamOptimizer(0.01))


def _session(target, replica_id):
    # Optimizations would rename and fuse ops; off, each op of the graph shows in the trace.
    config = tf.ConfigProto(
        device_filters=["/job:ps", f"/job:worker/task:{replica_id}"], allow_soft_placement=False
    )
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    return tf.Session(target, config=config)


def _variable_placement(graph, ran):
    """Variables that ran, by name: reference ones as `VariableV2`, others as `VarHandleOp`."""
    types = ("VariableV2", "VarHandleOp")
    return {op.name: ran[op.name] for op in graph.get_operations() if op.type in types}


@pytest.mark.parametrize(
    ("strategy", "small_bytes", "used"),
    [
        pytest.param("round_robin", placement.SMALL_BYTES, PS, id="round_robin"),
        pytest.param("balanced", 0, PS, id="balanced"),
        pytest.param("balanced", placement.SMALL_BYTES, PS[:1], id="balanced, small ones together"),
    ],
)
@pytest.mark.parametrize("replica_id", [0, 1])
def test_everything_runs_where_it_should(  # noqa: PLR0917 - fixtures
    workers, replica_id, strategy, small_bytes, used, variable_kind, graph, monkeypatch
):
    """Variables of every kind run on the ps tasks, clones on their own worker's devices."""
    monkeypatch.setattr(placement, "SMALL_BYTES", small_bytes)
    model = _deploy(replica_id, strategy)
    with _session(workers[replica_id], replica_id) as session:
        session.run(tf.global_variables_initializer())
        read_all = [v.read_value() for v in tf.global_variables()]
        ran = clusters.trace_placement(session, [model.train_op, read_all])
    variables = _variable_placement(graph, ran)
    assert set(variables) == {v.op.name for v in tf.global_variables()}
    assert set(variables.values()) == set(used)
    for slot in ("Adam", "Adam_1"):  # with the variable that they belong to
        assert variables[f"table/{slot}"] == variables["table"]
    kinds = ["table", "hidden/BatchNorm/moving_mean", "global_step", "beta1_power"]
    assert all(variables[name] in PS for name in kinds)
    worker = f"/job:worker/task:{replica_id}/device:CPU"
    for i in range(2):
        products = [n for n in ran if n.startswith(f"clone_{i}/") and n.endswith("/MatMul")]
        assert products
        assert {ran[name] for name in products} == {f"{worker}:{i}"}
    assert ran["total_loss"] == ran["train_op"] == f"{worker}:0"
    assert {device for device in ran.values() if "/job:worker" in device} <= {
        f"{worker}:{i}" for i in range(2)
    }


def test_round_robin_takes_turns(workers, graph):
    """In the order in which they are made, variables alternate between the ps tasks."""
    model = _deploy(0, "round_robin")
    with _session(workers[0], 0) as session:
        session.run(tf.global_variables_initializer())
        ran = clusters.trace_placement(
            session, [model.train_op, [v.read_value() for v in tf.global_variables()]]
        )
    made = [v.op.name for v in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)]
    assert [_variable_placement(graph, ran)[name] for name in made] == [
        PS[i % 2] for i in range(len(made))
    ]


@pytest.mark.slow
def test_replicas_share_variables(workers, variable_kind):
    """Two replicas train the same variables: steps of both count, and both see the weights."""
    sessions = []
    for replica_id, target in enumerate(workers):
        with tf.Graph().as_default():
            model = _deploy(replica_id, "round_robin")
            session = _session(target, replica_id)
            if replica_id == 0:
                session.run(tf.global_variables_initializer())
            sessions.append((session, model, tf.train.get_global_step(), tf.trainable_variables()))
    for _ in range(3):
        for session, model, _, _ in sessions:
            assert np.isfinite(session.run(model.train_op))
    seen = [session.run([step, variables]) for session, _, step, variables in sessions]
    assert seen[0][0] == seen[1][0] == 6
    for first, second in zip(seen[0][1], seen[1][1], strict=True):
        np.testing.assert_array_equal(first, second)
    for session, *_ in sessions:
        session.close()
