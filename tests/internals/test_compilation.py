"""What TensorFlow says of XLA's kernels, and of deterministic ops."""

import math

import pytest
import tensorflow as tf
from tensorflow.python.framework import config

from model_deploy import inputs, internals
from tests.inputs import sessions


@pytest.fixture
def deterministic_ops():
    """They are for the whole process: other tests have theirs as they were."""
    tf.config.experimental.enable_op_determinism()
    yield
    config.disable_op_determinism()


@pytest.mark.parametrize("device_type", ["CPU", "GPU"])
def test_xla_kernels(device_type):
    """XLA multiplies matrices of floats, not of strings, and reads no iterator."""
    kernels = internals.xla_kernels("MatMul", device_type)
    types = frozenset.union(*(kernel["T"] for kernel in kernels))
    assert tf.float32 in types
    assert tf.string not in types
    assert internals.xla_kernels("IteratorGetNext", device_type) == []


def test_determinism_is_seen(deterministic_ops):
    """It is known that ops are deterministic, and that they were not."""
    assert internals.ops_are_deterministic()
    config.disable_op_determinism()
    assert not internals.ops_are_deterministic()


def test_inputs_of_deterministic_ops(deterministic_ops):
    """Batches are the same ones; how long a step has waited is not known."""

    def build():
        tf.compat.v1.set_random_seed(1)
        dataset = inputs.get_dataset("digits", "train")
        batches = inputs.train_batches(dataset, batch_size=500, num_epochs=1, preprocessing="lenet")
        return next(batches)["label"], batches.wait_secs

    taken = sessions.collect(build)
    config.disable_op_determinism()
    expected = sessions.collect(build)
    assert len(taken) == len(expected) == 2
    for (labels, wait_secs), (other_labels, _) in zip(taken, expected, strict=True):
        assert labels.tolist() == other_labels.tolist()
        assert math.isnan(wait_secs)
