"""Model parallelism: clones that spread their stages over several devices."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, create_clones, current_clone, deploy, describe, slim
from model_deploy.parts import noted_parts, stages_by_device
from tests import copies, devices
from tests.goldens import GOLDENS, NUM_CLASSES, VOCABULARY, Golden, cpu_config, formula

STEPS = 3


def _embedding_and_layer(features, labels, stage):
    """Sparse gradients in the first stage, dense ones in the second."""
    with stage(0):
        table = tf.get_variable("table", [VOCABULARY, 4], initializer=formula)
        words = tf.reduce_mean(tf.nn.embedding_lookup(table, features), axis=1)
        net = tf.tanh(words, name="first")
    with stage(1):
        logits = slim.fully_connected(
            net,
            NUM_CLASSES,
            None,
            weights_initializer=formula,
            weights_regularizer=slim.l2_regularizer(0.1),
            scope="logits",
        )
        tf.losses.sparse_softmax_cross_entropy(labels, logits)


def _norm_and_loop(features, labels, stage):
    """Batch norm's update ops in the first stage, a loop in the second."""
    with stage(0):
        net = slim.batch_norm(features, decay=0.9, is_training=True, scope="norm")
        net = tf.identity(net, name="first")
    with stage(1):
        weights = tf.get_variable("weights", [3, 3], initializer=formula)

        def body(i, state):
            return i + 1, tf.tanh(tf.matmul(state, weights))

        _, state = tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), net))
        predictions = tf.reduce_sum(state, axis=1, keepdims=True)
        tf.losses.mean_squared_error(labels, predictions)


_WORDS, _NORM = GOLDENS["embedding"], GOLDENS["batch_norm"]
# Batch norm: see the law about halves of a batch in `test_laws`.
MODELS = {
    "embedding": Golden("embedding", _WORDS.features, _WORDS.labels, _embedding_and_layer),
    "loop": Golden("loop", _NORM.features, _NORM.labels, _norm_and_loop, batch_law=False),
}


def _deploy(golden, num_clones, num_stages, copy=False, accumulate_steps=1):
    """A model on the devices of `cpu_config`: 2 clones x 2 stages use all four."""
    devices.need(num_clones * num_stages)
    config = DeploymentConfig(
        num_clones=num_clones,
        clone_on_cpu=not devices.on_gpus(),
        devices_per_clone=num_stages,
        copy_clones=copy,
        accumulate_steps=accumulate_steps,
    )

    def stage(index):
        return tf.device(config.stage_device(current_clone(), min(index, num_stages - 1)))

    return deploy(
        config,
        lambda batches: golden.model_fn(*next(batches), stage),
        [copies.batches_of(golden, config.batches_per_step)],
        optimizer=tf.train.AdamOptimizer(0.1),
        clip_norm=1.0,
    )


def _train(golden, num_clones, num_stages, copy=False, accumulate_steps=1):
    with tf.Graph().as_default():
        model = _deploy(golden, num_clones, num_stages, copy, accumulate_steps)
        with tf.Session(config=cpu_config(4)) as session:
            session.run(tf.global_variables_initializer())
            losses = [session.run(model.train_op) for _ in range(STEPS)]
            return losses, session.run({v.op.name: v for v in tf.global_variables()})


def _assert_close(actual, expected):
    np.testing.assert_allclose(actual[0], expected[0], rtol=0, atol=1e-6)
    assert actual[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        np.testing.assert_allclose(actual[1][name], value, rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.gpu
@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
@pytest.mark.parametrize("name", list(MODELS))
def test_stages_train_as_one_device_does(name, copy, variable_kind):
    """Two clones of two stages end within 1e-6 of clones on one device each.

    Where halves of a batch make up the whole, that is one clone on one device.
    """
    golden = MODELS[name]
    reference = _train(golden, 1 if golden.batch_law else 2, 1)
    _assert_close(_train(golden, 2, 2, copy), reference)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
@pytest.mark.parametrize("name", list(MODELS))
def test_stages_accumulate_as_clones_on_one_device_do(name, copy, variable_kind):
    """Two clones of two stages, with two batches each, end where four clones end."""
    expected = _train(MODELS[name], 4, 1)
    _assert_close(_train(MODELS[name], 2, 2, copy, accumulate_steps=2), expected)


@pytest.mark.parametrize("name", list(MODELS))
def test_copied_stages_are_what_calls_build(name, variable_kind):
    """Copies have the ops of calls, each on the device of its clone and stage."""
    graphs = []
    for copy in (False, True):
        with tf.Graph().as_default() as graph:
            _deploy(MODELS[name], 2, 2, copy)
            graphs.append((copies.nodes(graph), copies.collections(graph)))
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
def test_gradients_are_beside_their_ops(copy, variable_kind):
    """The gradient of an op has its device: clone i has the CPUs 2 i and 2 i + 1."""
    _deploy(MODELS["embedding"], 2, 2, copy)
    graph = tf.get_default_graph()
    for clone in (0, 1):
        scope = f"clone_{clone}"
        ops = {
            "first": 2 * clone,
            "logits/BiasAdd": 2 * clone + 1,
            "logits/MatMul": 2 * clone + 1,
        }
        for name, device in ops.items():
            assert graph.get_operation_by_name(f"{scope}/{name}").device == f"/device:CPU:{device}"
            prefix = f"{scope}/gradients/{scope}/{name}_grad/"
            gradients = [op for op in graph.get_operations() if op.name.startswith(prefix)]
            assert gradients
            assert {op.device for op in gradients} == {f"/device:CPU:{device}"}


def test_weights_are_where_the_config_says(variable_kind):
    """Variables of all stages are on the parameter servers, in turn, and not in the stages."""
    config = DeploymentConfig(num_clones=2, devices_per_clone=2, num_ps_tasks=2)

    def model_fn():
        outputs = []
        for stage in (0, 1):
            with tf.device(config.stage_device(current_clone(), stage)):
                weight = slim.variable(f"w{stage}", [])
                outputs.append((weight, tf.identity(weight)))
        return outputs

    for i, clone in enumerate(create_clones(config, model_fn)):
        devices = [(weight.device, read.device) for weight, read in clone.outputs]
        assert devices == [
            (f"/job:ps/task:{stage}/device:CPU:0", f"/job:worker/device:GPU:{2 * i + stage}")
            for stage in (0, 1)
        ]


def test_get_variable_keeps_to_the_config(variable_kind):
    """A stage's device is for ops: `tf.get_variable` in it gives a variable of the config."""
    config = DeploymentConfig(devices_per_clone=2)

    def model_fn():
        with tf.device(config.stage_device(current_clone(), 1)):
            return tf.get_variable("w", [])

    (clone,) = create_clones(config, model_fn)
    assert clone.outputs.device == "/device:CPU:0"


@pytest.mark.parametrize("whole_graph", [True, False], ids=["graph", "model"])
def test_describe_shows_the_stages(whole_graph):
    """The report names clone and stage beside each of their devices."""
    model = _deploy(MODELS["embedding"], 2, 2)
    report = describe(tf.get_default_graph() if whole_graph else model)
    stages = {row.device: row.stages for row in report.devices}
    assert {device: words for device, words in stages.items() if words} == {
        "/device:CPU:0": "clone 0 stage 0",
        "/device:CPU:1": "clone 0 stage 1",
        "/device:CPU:2": "clone 1 stage 0",
        "/device:CPU:3": "clone 1 stage 1",
    }
    assert "/device:CPU:3 (clone 1 stage 1)" in str(report)
    crossing = {(row.source, row.target) for row in report.transfers}
    assert ("/device:CPU:2", "/device:CPU:3") in crossing
    assert ("/device:CPU:3", "/device:CPU:2") in crossing  # the gradient
    assert ("/device:CPU:1", "/device:CPU:2") not in crossing


def test_devices_of_one_stage_are_not_named():
    """Clones with a device each have no stages to show."""
    create_clones(DeploymentConfig(num_clones=2), lambda: None)
    assert stages_by_device(noted_parts(tf.get_default_graph())) == {}


def test_current_clone():
    """`model_fn` can ask which clone it builds, in each part; elsewhere that is an error."""
    clones = create_clones(DeploymentConfig(num_clones=3), current_clone)
    assert [clone.outputs for clone in clones] == [0, 1, 2]
    clones = create_clones(DeploymentConfig(num_clones=2, accumulate_steps=2), current_clone)
    assert [clone.outputs for clone in clones] == [0, 0, 1, 1]
    with pytest.raises(RuntimeError, match="known only while model_fn is called"):
        current_clone()
