"""Batch norms of Keras 3 are fused in clones, where that computes the same."""

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import create_clones
from tests.goldens import LogicalDevices, cpu_config

# Numbers that bfloat16 has, too.
IMAGES = (np.random.default_rng(0).normal(8, 24, [5, 4, 3, 6]).round() / 8).astype(np.float32)


def _build(layer, images, **options):
    """The layer's outputs in training in a deployment, and the types of the graph's ops."""

    def model_fn():
        tf.losses.add_loss(tf.zeros([]))
        return layer(tf.constant(images), training=True)

    [clone] = create_clones(LogicalDevices(**options), model_fn)[:1]
    types = {op.type for op in tf.get_default_graph().get_operations()}
    return clone.outputs, types


@pytest.mark.parametrize("settings", [{}, {"scale": False, "center": False}], ids=["both", "none"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("mixed_bfloat16", 1e-2)])
def test_it_is_the_fused_op(settings, dtype, tolerance):
    """Outputs, gradients and averages are those of the definition, with the batch's variance."""
    layer = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-2, dtype=dtype, **settings)
    outputs, types = _build(layer, IMAGES)
    assert "FusedBatchNormV3" in types
    assert outputs.dtype == ("float32" if dtype == "float32" else "bfloat16")
    with tf.Session(config=cpu_config()) as session:
        session.run(tf.global_variables_initializer())
        found = session.run([tf.cast(outputs, tf.float32), *tf.get_collection("update_ops")])[0]
        averages = session.run([layer.moving_mean.value, layer.moving_variance.value])
    values = IMAGES.astype(np.float64)
    mean, variance = values.mean(axis=(0, 1, 2)), values.var(axis=(0, 1, 2))
    expected = (values - mean) / np.sqrt(variance + 1e-2)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(averages[0], 0.1 * mean, rtol=1e-5)
    np.testing.assert_allclose(averages[1], 0.9 + 0.1 * variance, rtol=1e-5)


def _layer(**settings):
    return keras.layers.BatchNormalization(**settings)


def _frozen():
    layer = _layer()
    layer.trainable = False
    return layer


OTHERS = {
    "of vectors": (_layer, IMAGES[:, 0, 0], {}),
    "of sequences": (_layer, IMAGES[:, 0], {}),
    "of another axis": (lambda: _layer(axis=1), IMAGES, {}),
    "of a tiny epsilon": (lambda: _layer(epsilon=1e-6), IMAGES, {}),
    "of doubles": (lambda: _layer(dtype="float64"), IMAGES.astype(np.float64), {}),
    "frozen": (_frozen, IMAGES, {}),
    "synchronized": (_layer, IMAGES, {"num_clones": 2, "sync_batch_norm": True}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_left_alone(name):
    """What the op does not compute as Keras does is computed as Keras does."""
    make, images, options = OTHERS[name]
    _, types = _build(make(), images, **options)
    assert "FusedBatchNormV3" not in types


def test_outside_of_clones_it_is_as_it_was():
    """A layer that is called after the deployment was built is Keras' own."""
    layer = keras.layers.BatchNormalization()
    _build(layer, IMAGES)
    count = len(tf.get_default_graph().get_operations())
    layer(tf.constant(IMAGES), training=True)
    later = tf.get_default_graph().get_operations()[count:]
    assert "FusedBatchNormV3" not in {op.type for op in later}
