"""All networks for a step on a GPU: the loss of the CPU, and every gradient is finite."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy
from nets import nets_factory
from tests import harness
from tests.goldens import LogicalDevices, cpu_config
from tests.nets import graphs, reference

BATCH_SIZE, NUM_CLASSES = 2, 10


class OnCPU(LogicalDevices):
    """The same on the CPU."""

    def clone_device(self, clone_index):
        """The first CPU."""
        return "/device:CPU:0"


def _step(name, config):
    """Loss of the first step and the norms of all gradients, by a formula's numbers."""
    shape = reference.load(name)["training_loss_and_update"]["input_shape"]
    values = np.cos(np.arange(np.prod(shape))).reshape(shape).astype(np.float32)
    labels = np.arange(shape[0]) % NUM_CLASSES

    def model_fn():
        network = nets_factory.get_network_fn(name, NUM_CLASSES, is_training=False)
        logits, _ = network(tf.constant(values))
        tf.losses.sparse_softmax_cross_entropy(tf.constant(labels), logits)

    with tf.Graph().as_default():
        tf.set_random_seed(1)
        model = deploy(config, model_fn, optimizer=harness.sgd(1e-3))
        gradients = tf.gradients(model.total_loss, tf.trainable_variables())
        norms = [tf.norm(each) for each in gradients if each is not None]
        with tf.Session(config=cpu_config(1)) as session:
            graphs.initialize_alike(session)
            found = session.run([model.total_loss, *norms])
            session.run(model.train_op)
            after = session.run(model.total_loss)
    return found[0], found[1:], after


@pytest.mark.needs_gpu
@pytest.mark.parametrize("name", list(nets_factory.networks_map))
def test_network_trains_on_a_gpu(name):
    """A step on a GPU has the loss of one on the CPU, to rounding, and finite gradients."""
    loss, norms, after = _step(name, LogicalDevices())
    expected, _, _ = _step(name, OnCPU())
    assert loss == pytest.approx(expected, rel=1e-3)
    assert np.all(np.isfinite(norms))
    assert np.isfinite(after)
