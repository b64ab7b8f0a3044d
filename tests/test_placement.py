"""Which ps task a variable goes to."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tf_slim.nets import inception_v3, resnet_v1, vgg

from model_deploy import DeploymentConfig, placement, slim


@pytest.mark.parametrize(
    ("strategy", "tasks"),
    [("round_robin", [0, 1, 2, 0, 1, 2, 0]), ("balanced", [0, 0, 0, 1, 2, 1, 1])],
)
def test_strategies(strategy, tasks, variable_kind):
    """Round robin takes turns; balanced takes the task with the fewest bytes, or, for less than
    64 KiB, that of the variable before.

    Of 1, 100, 3, 20, 60, 20, 4 thousand floats the balanced tasks have 1 + 100 + 3, 20 + 20 + 4,
    and 60.
    """
    sizes = [1_000, 100_000, 3_000, 20_000, 60_000, 20_000, 4_000]
    choose = placement.PsDeviceChooser("/job:ps", 3, strategy)
    with tf.device(choose):
        variables = [tf.get_variable(f"v{i}", [size]) for i, size in enumerate(sizes)]
    assert [v.device for v in variables] == [f"/job:ps/task:{t}/device:CPU:0" for t in tasks]


def test_many_small_variables_are_balanced():
    """Of 100 variables of 30,000 bytes each task holds half: two of them are worth a message."""
    choose = placement.PsDeviceChooser("/job:ps", 2, "balanced")
    with tf.device(choose):
        variables = [tf.get_variable(f"v{i}", [7_500]) for i in range(100)]
    tasks = [tf.DeviceSpec.from_string(variable.device).task for variable in variables]
    assert abs(tasks.count(0) - 50) <= 3


def test_chooser_keeps_what_is_named(variable_kind):
    """A named job is kept as it is; other parts of a device are kept on the ps task."""
    choose = placement.PsDeviceChooser("/job:ps", 2, "round_robin")
    with tf.device(choose):
        with tf.device("/job:worker/device:GPU:0"):
            on_worker = tf.get_variable("a", [])
        with tf.device("/device:GPU:1"):
            on_gpu = tf.get_variable("b", [])
    assert on_worker.device == "/job:worker/device:GPU:0"
    assert on_gpu.device == "/job:ps/task:0/device:GPU:1"


def test_chooser_takes_node_defs():
    """TensorFlow's importer calls device functions with a `NodeDef`."""
    node = tf.NodeDef(op="VariableV2", name="v")
    node.attr["dtype"].type = tf.float32.as_datatype_enum
    assert placement.PsDeviceChooser("/job:ps", 1, "round_robin")(node) == (
        "/job:ps/task:0/device:CPU:0"
    )


@pytest.mark.parametrize(
    ("shape", "num_parts", "min_bytes", "expected"),
    [
        pytest.param([7, 7, 512, 4096], 4, 1, [1, 1, 1, 4], id="longest axis"),
        pytest.param([2048, 1000], 8, 1, [8, 1], id="first axis"),
        pytest.param([64, 64], 2, 1, [1, 2], id="last of equal axes"),
        pytest.param([3, 2], 8, 1, [3, 1], id="more parts than rows"),
        pytest.param([10, 1], 4, 1, [4, 1], id="uneven"),
        pytest.param([10, 1], 4, 41, [1, 1], id="small"),
        pytest.param([], 4, 1, [], id="scalar"),
    ],
)
def test_partitioner(shape, num_parts, min_bytes, expected):
    """Big variables are cut along their longest axis, small ones stay whole."""
    partition = placement.even_partitioner(num_parts, min_bytes)
    assert partition(shape=tf.TensorShape(shape), dtype=tf.float32) == expected


def _vgg_16(images):
    return vgg.vgg_16(images)


def _resnet_50(images):
    with slim.arg_scope(resnet_v1.resnet_arg_scope()):
        return resnet_v1.resnet_v1_50(images, 1000)


def _inception_v3(images):
    with slim.arg_scope(inception_v3.inception_v3_arg_scope()):
        return inception_v3.inception_v3(images, 1000)


# Trainable parameters with 1,000 classes; of inception_v3 27,161,264 are known with its
# auxiliary head, of which slim leaves out the 18,112 factors of batch normalization.
@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("network", "parameters"),
    [(_vgg_16, 138_357_544), (_inception_v3, 27_161_264 - 18_112), (_resnet_50, 25_557_032)],
    ids=["vgg_16", "inception_v3", "resnet_50"],
)
def test_balanced_ps_tasks_are_even(network, parameters):
    """With the partitioner the fullest of 2 to 8 tasks holds at most 1.2 times the mean."""
    images = [1, 299, 299, 3] if network is _inception_v3 else [1, 224, 224, 3]
    with tf.Graph().as_default():
        network(tf.zeros(images))
        whole = [(v.op.name, v.shape) for v in tf.global_variables()]
        assert sum(v.shape.num_elements() for v in tf.trainable_variables()) == parameters

    def variables():
        for name, shape in whole:
            tf.get_variable(name, shape, initializer=tf.zeros_initializer())

    if network is _vgg_16:
        held = _bytes_on_tasks(8, lambda: network(tf.zeros(images)))
        assert held == _bytes_on_tasks(8, variables)  # placement depends on nothing else
    for num_ps_tasks in (2, 3, 5, 8):
        held = _bytes_on_tasks(num_ps_tasks, variables)
        assert max(held) <= 1.2 * np.mean(held), (num_ps_tasks, held)


def _bytes_on_tasks(num_ps_tasks, build):
    """Builds with balanced, partitioned variables; returns what each ps task holds."""
    config = DeploymentConfig(num_ps_tasks=num_ps_tasks, ps_strategy="balanced")
    held = [0] * num_ps_tasks
    with tf.Graph().as_default():
        partitioned = tf.variable_scope("", partitioner=config.partitioner())
        with partitioned, tf.device(config.variables_device()):
            build()
        for variable in tf.global_variables():
            task = tf.DeviceSpec.from_string(variable.device).task
            held[task] += 4 * variable.shape.num_elements()
    return held
