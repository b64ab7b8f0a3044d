"""Calls of functions, to which gradients add outputs, in copied clones."""

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from model_deploy import create_clones, optimize_clones
from tests import harness
from tests.goldens import LogicalDevices, cpu_config

IMAGES = np.cos(np.arange(2 * 3 * 4 * 4 * 4)).reshape(2, 3, 4, 4, 4).astype(np.float32)


@tf2.function
def twice(images, kernel):
    """A convolution, twice: its gradient needs what is between them."""
    net = tf.tanh(tf.nn.conv2d(images, kernel, 1, "SAME"))
    return tf.tanh(tf.nn.conv2d(net, kernel, 1, "SAME"))


def _gradient(copy_clones):
    def model_fn(batches):
        start = np.sin(np.arange(3 * 3 * 4 * 4)).reshape(3, 3, 4, 4)
        kernel = tf.get_variable("kernel", initializer=tf.constant(start, tf.float32))
        tf.losses.add_loss(tf.reduce_sum(twice(next(batches), tf.convert_to_tensor(kernel))))

    with tf.Graph().as_default(), tf.Session(config=cpu_config()) as session:
        batches = iter([tf.constant(each) for each in IMAGES])
        config = LogicalDevices(2, copy_clones=copy_clones)
        clones = create_clones(config, model_fn, [batches])
        _, [[gradient, _]] = optimize_clones(clones, harness.sgd(1.0))
        session.run(tf.global_variables_initializer())
        return session.run(gradient)


@pytest.mark.not_v1("a tf.function reads no reference variable")
def test_gradient_of_a_call():
    """Copies have the gradient that called clones have."""
    np.testing.assert_allclose(_gradient(True), _gradient(False), rtol=1e-5)
