"""Networks of `keras.applications` are trained by clones, whichever layers they have."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from nets import keras_networks, nets_factory
from tests import harness
from tests.goldens import LogicalDevices, cpu_config
from tests.keras import few_blocks

# The least size of their images.  Layers of all families are in these: depthwise and separable
# convolutions, rescaled inputs, scaled branches, swish, squeezes, convolutions in groups.
SIZES = {
    "ConvNeXtTiny": 32,
    "EfficientNetB0": 32,
    "MobileNetV2": 32,
    "MobileNetV3Small": 32,
    "VGG16": 32,
    "Xception": 71,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        # What TensorFlow 1's behavior changes it changes in each of them.
        pytest.param(name, marks=() if name == "MobileNetV2" else pytest.mark.one_mode)
        for name in SIZES
    ],
)
def test_a_step_on_two_clones(name, monkeypatch):
    """A step of two clones changes weights and batch-norm averages, by finite values."""
    few_blocks.shorten(monkeypatch)
    config = LogicalDevices(2, copy_clones=True)
    if name.startswith("ConvNeXt"):
        # Keras compiles its convolutions in groups with XLA, which reads no variable elsewhere.
        config = DeploymentConfig(2, clone_on_cpu=True, copy_clones=True)
    images = np.random.default_rng(1).uniform(0, 255, [2, 2, SIZES[name], SIZES[name], 3])
    batches = iter([tf.constant(each, tf.float32) for each in images])

    def model_fn(batches):
        network_fn = nets_factory.get_network_fn(f"keras/{name}", 5, 0.0001, is_training=True)
        logits, _ = network_fn(next(batches))
        tf.losses.sparse_softmax_cross_entropy(tf.constant([1, 3]), logits)

    model = deploy(config, model_fn, [batches], optimizer=harness.sgd(0.01))
    network = keras_networks.built_model()
    variables = [variable.value for variable in network.weights]
    assert {v.op.name for v in variables} < {v.op.name for v in tf.global_variables()}
    assert len(tf.trainable_variables()) == len(network.trainable_variables)
    averages = [v for v in variables if "moving_" in v.op.name]
    # What Keras compiles with XLA is prepared by TensorFlow's rewriting, which takes a third of it.
    proto = cpu_config(rewritten=name.startswith("ConvNeXt"))
    with tf.Session(config=proto) as session:
        session.run(tf.global_variables_initializer())
        before = session.run([tf.trainable_variables(), averages])
        assert np.isfinite(session.run(model.train_op))
        after = session.run([tf.trainable_variables(), averages])
    for one, other in zip(before, after, strict=True):
        changed = [not np.array_equal(*pair) for pair in zip(one, other, strict=True)]
        # The branches of ConvNeXt start scaled by 1e-6: most of their weights seem to stay.
        assert not one or np.mean(changed) > (0 if name.startswith("ConvNeXt") else 0.5)
        assert all(np.isfinite(value).all() for value in other)
