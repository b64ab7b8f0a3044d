"""Batches that are staged on the device of their clone: the same ones, none lost by a restart.

A logical CPU stands for a GPU: it is another device, to which TensorFlow copies.
"""

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.pipelines import staging

tf1 = tf.compat.v1
DEVICES = ["/device:CPU:1", "/device:CPU:2"]
NUM_EXAMPLES = 24


@pytest.fixture
def apart(monkeypatch):
    """Logical CPUs count as devices with memory of their own."""
    monkeypatch.setattr(staging, "is_apart", lambda device: device in DEVICES)


def _session():
    return tf1.Session(config=tf1.ConfigProto(device_count={"CPU": 3}))


def _steps(num_steps, start=None, devices=None):
    """Indices of each step, for each clone, and the position after them."""
    with tf.Graph().as_default() as graph:
        batches = inputs.train_batches(
            inputs.get_dataset("synthetic", "train", num_examples=NUM_EXAMPLES, image_size=4),
            batch_size=2,
            num_clones=2,
            preprocessing="lenet",
            include_index=True,
            clone_devices=devices,
            inputs_device="/device:CPU:0",
        )
        taken = [next(batches)["index"] for _ in range(2)]
        takers = [op for op in graph.get_operations() if op.type == "IteratorGetNext"]
        [position] = tf1.global_variables()
        with _session() as session:
            session.run(tf1.global_variables_initializer())
            if start is not None:
                session.run(position.assign([start]))
            session.run(tf1.tables_initializer())
            steps = [np.array(session.run(taken)).tolist() for _ in range(num_steps)]
            return steps, session.run(position).tolist(), [op.device for op in takers]


@pytest.mark.usefixtures("apart")
def test_staged_batches_are_the_same():
    """Two iterators on devices of their own give what the shared one on the CPU gives. What was
    staged when a run stopped is made again: the next run goes on with it.
    """
    expected, position, _ = _steps(9)
    first, stopped_at, devices = _steps(4, devices=DEVICES)
    rest, end, _ = _steps(5, start=4, devices=DEVICES)
    assert (devices, stopped_at) == (DEVICES, [4])
    assert first + rest == expected
    assert position == end == [9]


def test_next_batch_is_staged_while_a_step_runs():
    """After a step at most five more batches have been made: they are staged or wait for it."""
    made = []

    def count(number):
        made.append(int(number))
        return number

    with tf.Graph().as_default():
        numbers = tf.data.Dataset.range(100).map(
            lambda number: tf.numpy_function(count, [number], tf.int64)
        )
        iterator = staging.staged_iterator(numbers, DEVICES[0], "/device:CPU:0")
        number = iterator.get_next()
        with _session() as session:
            session.run(iterator.initializer)
            for step in range(5):
                assert session.run(number) == step
                assert len(made) <= step + 1 + 5
            assert len(made) >= 5


@pytest.mark.parametrize(
    ("device", "apart"),
    [("/job:worker/device:GPU:1", True), ("/gpu:0", True), ("/device:CPU:1", False), ("", False)],
)
def test_gpus_have_memory_of_their_own(device, apart):
    """Batches are staged for GPUs only."""
    assert staging.is_apart(device) == apart
