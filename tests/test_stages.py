"""Model parallelism: clones that spread their stages over several devices.

That they train as clones on one device each is in `tests/laws.py`.
"""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, create_clones, current_clone, describe, slim
from model_deploy.parts import noted_parts, stages_by_device
from tests import copies, devices, harness
from tests.staged import MODELS


def _built(golden, copy=False):
    """Two clones of two stages use the four devices of `cpu_config`."""
    devices.need(4)
    config = DeploymentConfig(
        num_clones=2, clone_on_cpu=not devices.on_gpus(), devices_per_clone=2, copy_clones=copy
    )
    return harness.Replica(config, golden)


@pytest.mark.parametrize("name", list(MODELS))
def test_copied_stages_are_what_calls_build(name, variable_kind):
    """Copies have the ops of calls, each on the device of its clone and stage."""
    graphs = []
    for copy in (False, True):
        graph = _built(MODELS[name], copy).graph
        graphs.append((copies.nodes(graph), copies.collections(graph)))
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
def test_gradients_are_beside_their_ops(copy, variable_kind):
    """The gradient of an op has its device: clone i has the CPUs 2 i and 2 i + 1."""
    graph = _built(MODELS["embedding"], copy).graph
    for clone in (0, 1):
        scope = f"clone_{clone}"
        ops = {"first": 2 * clone, "logits/BiasAdd": 2 * clone + 1, "logits/MatMul": 2 * clone + 1}
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
    run = _built(MODELS["embedding"])
    report = describe(run.graph if whole_graph else run.model)
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
