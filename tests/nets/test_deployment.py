"""Networks trained for a step on two clones, saved, and restored into fresh graphs.

The quick networks do so, and a narrow one of cells, with batch normalization, separable
convolutions and an auxiliary head.
"""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from model_deploy.classification import losses as classification
from tests.nets import graphs

NETWORKS = [
    *("cifarnet", "lenet", "mnist_mlp", "resnet_9_small", "text_lstm"),
    pytest.param("nasnet_cifar", marks=pytest.mark.slow),
]


class RecordingOptimizer(tf.train.GradientDescentOptimizer):
    """Keeps the gradients that it is asked to apply."""

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Applies gradients as its base does."""
        self.applied = list(grads_and_vars)
        return super().apply_gradients(self.applied, global_step, name)


def build(name, smallest=64, is_training=False):
    """Builds a network on small images; returns logits and end points."""
    images = graphs.sample(name, smallest)
    return graphs.build(name, images, 10, is_training, 1e-4, **graphs.narrow(name))


def classify(name):
    """Builds a network for training with its classification losses, auxiliary head included."""
    logits, end_points = build(name, is_training=True)
    classification.add_classification_losses(
        logits, graphs.LABELS, auxiliary_logits=end_points.get("AuxLogits")
    )
    return logits


def all_finite(gradient):
    """Whether all values of a dense or sparse gradient are finite, as a tensor."""
    values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
    return tf.reduce_all(tf.is_finite(values))


def deployed(name, checkpoint):
    """Takes a step on two clones and saves; whether gradients are finite, the loss, variables."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        optimizer = RecordingOptimizer(1e-6)
        config = DeploymentConfig(num_clones=2, clone_on_cpu=True)
        model = deploy(config, classify, [name], optimizer=optimizer)
        finite = {v.op.name: all_finite(gradient) for gradient, v in optimizer.applied}
        assert list(finite) == [v.op.name for v in tf.trainable_variables()]
        saver = tf.train.Saver()  # before the session: what comes later is placed anew, all of it
        with graphs.session(graph) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            finite, loss = sess.run([finite, model.train_op])
            saver.save(sess, checkpoint, write_meta_graph=False)
            return finite, loss, sess.run({v.op.name: v for v in tf.global_variables()})


def restored(checkpoint, fetches=()):
    """Returns all variables of the current graph after restoring them, by name, and `fetches`."""
    with graphs.session(tf.get_default_graph()) as sess:
        tf.train.Saver().restore(sess, checkpoint)
        return sess.run([{v.op.name: v for v in tf.global_variables()}, fetches])


@pytest.mark.parametrize("name", NETWORKS)
def test_checkpoint_of_two_clones(name, tmp_path):
    """On two clones each trainable variable has a finite gradient, with the auxiliary loss; what
    they save has every variable of a training graph of one clone, and those of an evaluation.
    """
    checkpoint = str(tmp_path / "model.ckpt")
    finite, loss, trained = deployed(name, checkpoint)
    assert finite
    assert all(finite.values())
    assert np.isfinite(loss)
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        classify(name)
        again, _ = restored(checkpoint)
    assert again.keys() == trained.keys()
    with tf.Graph().as_default():
        logits, _ = build(name)
        evaluated, value = restored(checkpoint, logits)
    assert evaluated.keys() < again.keys()
    assert value.shape == (2, 10)
    assert np.isfinite(value).all()
    for variables in (again, evaluated):
        for variable, restored_value in variables.items():
            np.testing.assert_array_equal(restored_value, trained[variable])
