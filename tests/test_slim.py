"""TF-Slim on current TensorFlow: layers, old imports, and its own tests."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_slim

from model_deploy import slim

ROOT = Path(__file__).parents[1]
# Name, keyword arguments, shape of the input, shape of the output.
LAYERS = {
    "avg_pool2d": (slim.avg_pool2d, {"kernel_size": 2}, [2, 4, 4, 3], [2, 2, 2, 3]),
    "avg_pool3d": (slim.avg_pool3d, {"kernel_size": 2}, [2, 4, 4, 4, 3], [2, 2, 2, 2, 3]),
    "batch_norm": (slim.batch_norm, {}, [2, 4, 4, 3], [2, 4, 4, 3]),
    "batch_norm, not fused": (slim.batch_norm, {"fused": False}, [4, 3], [4, 3]),
    "batch_norm, inference": (slim.batch_norm, {"is_training": False}, [4, 3], [4, 3]),
    "bias_add": (slim.bias_add, {}, [4, 3], [4, 3]),
    "conv1d": (slim.conv1d, {"num_outputs": 5, "kernel_size": 3}, [2, 8, 3], [2, 8, 5]),
    "conv2d": (slim.conv2d, {"num_outputs": 5, "kernel_size": 3}, [2, 8, 8, 3], [2, 8, 8, 5]),
    "conv2d, normalized": (
        slim.conv2d,
        {"num_outputs": 5, "kernel_size": 3, "normalizer_fn": slim.batch_norm},
        [2, 8, 8, 3],
        [2, 8, 8, 5],
    ),
    "conv3d": (slim.conv3d, {"num_outputs": 5, "kernel_size": 3}, [1, 4, 4, 4, 3], [1, 4, 4, 4, 5]),
    "conv2d_transpose": (
        slim.conv2d_transpose,
        {"num_outputs": 5, "kernel_size": 3, "stride": 2},
        [2, 4, 4, 3],
        [2, 8, 8, 5],
    ),
    "conv2d_in_plane": (slim.conv2d_in_plane, {"kernel_size": 3}, [2, 8, 8, 3], [2, 8, 8, 3]),
    "separable_conv2d": (
        slim.separable_conv2d,
        {"num_outputs": 5, "kernel_size": 3, "depth_multiplier": 2},
        [2, 8, 8, 3],
        [2, 8, 8, 5],
    ),
    "dropout": (slim.dropout, {}, [4, 3], [4, 3]),
    "flatten": (slim.flatten, {}, [2, 4, 3], [2, 12]),
    "fully_connected": (slim.fully_connected, {"num_outputs": 5}, [4, 3], [4, 5]),
    "fully_connected, normalized": (
        slim.fully_connected,
        {"num_outputs": 5, "normalizer_fn": slim.batch_norm},
        [4, 3],
        [4, 5],
    ),
    "group_norm": (slim.group_norm, {"groups": 2}, [2, 4, 4, 6], [2, 4, 4, 6]),
    "instance_norm": (slim.instance_norm, {}, [2, 4, 4, 3], [2, 4, 4, 3]),
    "layer_norm": (slim.layer_norm, {}, [4, 3], [4, 3]),
    "max_pool2d": (slim.max_pool2d, {"kernel_size": 2}, [2, 4, 4, 3], [2, 2, 2, 3]),
    "max_pool3d": (slim.max_pool3d, {"kernel_size": 2}, [2, 4, 4, 4, 3], [2, 2, 2, 2, 3]),
    "one_hot_encoding": (slim.one_hot_encoding, {"num_classes": 3}, None, [4, 3]),
    "softmax": (slim.softmax, {}, [4, 3], [4, 3]),
    "spatial_softmax": (slim.spatial_softmax, {}, [2, 4, 4, 3], [2, 6]),
    "unit_norm": (slim.unit_norm, {"dim": 1}, [4, 3], [4, 3]),
}


def test_layers_run(variable_kind):
    """Each layer builds, runs and has finite values, and gradients where it has variables."""
    found = {}
    for number, (layer, options, inputs, _) in enumerate(LAYERS.values()):
        with tf.variable_scope(f"layer_{number}") as scope:
            values = tf.constant([0, 1, 2, 1]) if inputs is None else tf.random_uniform(inputs)
            result = layer(values, **options)
            loss, variables = tf.reduce_sum(tf.square(result)), tf.trainable_variables(scope.name)
            found[number] = [result, *tf.gradients(loss, variables)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([found, tf.get_collection(tf.GraphKeys.UPDATE_OPS)])[0]
    for (name, (*_, shape)), values in zip(LAYERS.items(), found.values(), strict=True):
        assert list(values[0].shape) == shape, name
        assert all(np.isfinite(each).all() for each in values), name


def test_batch_norm_normalizes(variable_kind):
    """The output has mean 0 and variance 1 per channel; the statistics move towards the batch."""
    values = np.random.RandomState(1).normal(3.0, 2.0, [64, 2]).astype(np.float32)
    result = slim.batch_norm(tf.constant(values), decay=0.9, epsilon=1e-6, scope="norm")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value, _ = session.run([result, tf.get_collection(tf.GraphKeys.UPDATE_OPS)])
        moving = {v.op.name: session.run(v) for v in slim.get_model_variables()}
    np.testing.assert_allclose(value.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(value.std(axis=0), 1, rtol=1e-4)
    np.testing.assert_allclose(moving["norm/moving_mean"], 0.1 * values.mean(axis=0), rtol=1e-5)


def test_all_of_slim_is_there():
    """`model_deploy.slim` has every name of `tf_slim`, and the very same objects."""
    names = [name for name in dir(tf_slim) if not name.startswith("_")]
    assert len(names) > 100
    assert all(getattr(slim, name) is getattr(tf_slim, name) for name in names)
    assert set(names) <= set(dir(slim))


def test_names():
    """A name that slim has not is an error, as in any module; those that tf-slim misses are given
    to tf-slim only.
    """
    from tensorflow.python.framework import ops  # noqa: PLC0415 - not public

    with pytest.raises(AttributeError, match="no_such_layer"):
        slim.no_such_layer  # noqa: B018 - reading it is the test
    seen_by_slim = sys.modules["tf_slim.layers.layers"].ops
    assert seen_by_slim.Tensor is tf.Tensor
    assert "Tensor" not in vars(ops)
    assert seen_by_slim.get_default_graph() is tf.get_default_graph()


@pytest.mark.slow
@pytest.mark.one_mode
def test_imports():
    """Slim works that is imported before model_deploy; all other tests import it afterwards."""
    program = (
        "import tf_slim as slim; import model_deploy; import tensorflow.compat.v1 as tf\n"
        "tf.disable_eager_execution()\n"
        "from tf_slim.nets import vgg\n"
        "print(slim.batch_norm(slim.fully_connected(tf.ones([2, 3]), 4)).shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout == "(2, 4)\n"


@pytest.mark.slow
@pytest.mark.one_mode
def test_slims_own_tests():
    """At least 780 of the 849 tests of tf-slim pass; the rest use NumPy 1.

    Some that take as long as all others together are left to the script alone.
    """
    dear = "testClusteringLossPAM or testConvAndBatchNorm or testRecompute or testOutputSmallInput"
    script = [sys.executable, str(ROOT / "scripts" / "tf_slim_tests.py"), "-n", "0"]
    command = [*script, "-k", f"not ({dear})"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert int(re.search(r"(\d+) passed", done.stdout).group(1)) >= 780, done.stdout
    assert done.returncode == 0
