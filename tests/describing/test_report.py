"""The placement report agrees with the graph, and with arithmetic."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, TransferRow, deploy, describe
from tests import harness
from tests.goldens import LogicalDevices

CPU, GPU0, GPU1 = "/device:CPU:0", "/device:GPU:0", "/device:GPU:1"


def test_devices_and_transfers(variable_kind):
    """A model on two GPUs reads its 24 bytes of weights there and returns as many of gradients.

    The weights are [2, 3] floats. Each GPU gets them once to multiply and returns its
    gradient and its loss, a scalar.
    """

    def model_fn():
        weights = tf.get_variable("weights", [2, 3], initializer=tf.zeros_initializer())
        tf.losses.add_loss(tf.reduce_sum(tf.matmul(tf.ones([4, 2]), tf.identity(weights))))

    model = deploy(DeploymentConfig(num_clones=2), model_fn, optimizer=harness.sgd())
    report = describe(model)
    rows = {row.device: row for row in report.devices}
    assert {CPU, GPU0, GPU1} <= rows.keys()
    assert (rows[CPU].variables, rows[CPU].variable_bytes) == (2, 6 * 4 + 8)  # and the step
    for gpu in (GPU0, GPU1):
        assert rows[gpu].variables == rows[gpu].variable_bytes == 0
        assert rows[gpu].ops > 0
    transfers = {(row.source, row.target): row for row in report.transfers}
    assert transfers.keys() == {(CPU, GPU0), (CPU, GPU1), (GPU0, CPU), (GPU1, CPU)}
    for gpu in (GPU0, GPU1):
        assert transfers[CPU, gpu] == TransferRow(CPU, gpu, 1, 24, 0)
        assert transfers[gpu, CPU] == TransferRow(gpu, CPU, 2, 24 + 4, 0)


@pytest.mark.one_mode
def test_report_agrees_with_the_run():
    """Each op runs on the device that the report counts it on.

    TensorFlow's own trace of a step says where it ran; constant folding is off so that
    no op is lost.
    """

    def model_fn():
        weights = tf.get_variable("weights", [2, 3], initializer=tf.zeros_initializer())
        tf.losses.add_loss(tf.reduce_sum(tf.matmul(tf.ones([4, 2]), weights)))

    optimizer = harness.momentum()
    model = deploy(LogicalDevices(num_clones=3), model_fn, optimizer=optimizer)
    counted = {row.device: row.ops for row in describe(model).devices if row.device != "(any)"}
    config = tf.ConfigProto(device_count={"CPU": 3}, allow_soft_placement=False)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    trace = tf.RunMetadata()
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(model.train_op, options=options, run_metadata=trace)
    graph = tf.get_default_graph()
    names = {op.name for op in graph.get_operations()}
    ran = {
        f"/device:{device.device.rsplit('/device:', 1)[1]}": {
            node.node_name for node in device.node_stats if node.node_name in names
        }
        for device in trace.step_stats.dev_stats
    }
    assert counted.keys() == ran.keys()
    for device, ops in counted.items():
        assert len(ran[device]) <= ops
        assert len(ran[device]) > 0.5 * ops


@pytest.mark.one_mode
def test_report_is_a_table():
    """The text has a line per device and per transfer; or says that nothing crosses between
    devices. Only graphs and models can be described.
    """

    def model_fn():
        tf.losses.add_loss(tf.square(tf.get_variable("w", [])))

    report = describe(deploy(DeploymentConfig(num_clones=2), model_fn))
    lines = str(report).splitlines()
    assert lines[0].split() == ["device", "ops", "variables", "bytes"]
    assert any(line.startswith(GPU1) for line in lines)
    assert any(line.startswith(f"{CPU} -> {GPU1}") for line in lines)
    model = deploy(
        DeploymentConfig(clone_on_cpu=True), lambda: tf.losses.add_loss(tf.constant(1.0))
    )
    assert "nothing crosses between devices" in str(describe(model))
    with pytest.raises(ValueError, match=r"a tf.Graph or a DeployedModel, got str"):
        describe("graph")
