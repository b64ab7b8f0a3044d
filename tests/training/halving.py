"""A model whose training a reader can redo: each step halves the weight."""

import tensorflow.compat.v1 as tf

from model_deploy import deploy, train
from tests.goldens import LogicalDevices, cpu_config


def square(gain=1.0):
    """The loss w^2 / 2 from w = 1; each step at rate 1/2 halves w."""
    weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
    tf.losses.add_loss(gain * tf.square(weight) / 2)


def halving_model(model_fn=square, num_clones=2):
    """The model on two clones: after n steps the weight is 2^-n."""
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    return deploy(LogicalDevices(num_clones=num_clones), model_fn, optimizer=optimizer)


def run_halving(train_dir, max_steps, model_fn=square, **options):
    """Trains it in a graph of its own."""
    with tf.Graph().as_default():
        model = halving_model(model_fn)
        return train(model, train_dir, max_steps=max_steps, session_config=cpu_config(), **options)
