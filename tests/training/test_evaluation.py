"""`evaluate`: the newest checkpoint, every example once, averages when asked."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, slim, train
from model_deploy.training import evaluate, moving_average_update
from tests.goldens import LogicalDevices, cpu_config

FEATURES = np.eye(7, 3, dtype=np.float32)
# The identity predicts classes 0, 1, 2, and 0 for the four rows of zeros: 5 of 7 are right.
LABELS = np.array([0, 1, 1, 0, 0, 0, 2])


def _predict():
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS)).batch(3)
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    features, labels = iterator.get_next()
    weights = slim.model_variable("weights", [3, 3])
    return tf.matmul(features, weights), labels


def _save(train_dir, weights, step):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("weights", initializer=tf.constant(weights, tf.float32))
        tf.Variable(np.int64(step), name="global_step")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(train_dir / "model.ckpt"), global_step=step)


def test_accuracy(tmp_path, variable_kind):
    """Five of seven examples are right, the last batch of one included."""
    _save(tmp_path, np.eye(3), 4)
    assert evaluate(_predict, tmp_path) == (5 / 7, 7, 4)


def test_the_newest_checkpoint_counts(tmp_path):
    """With a newer checkpoint that predicts 2 for the unit rows, one of them is right."""
    _save(tmp_path, np.eye(3), 4)
    _save(tmp_path, [[0, 0, 1], [0, 0, 1], [0, 0, 1]], 5)
    # Rows of zeros predict class 0, which three of the four are.
    assert evaluate(_predict, tmp_path) == (3 / 7, 7, 5)


def test_averages(tmp_path):
    """The averages of a run are evaluated in place of its variables.

    At rate 1/2 the weights go 1, 1/2, 1/4, 1/8. Each average becomes d times itself plus
    1 - d times the weight, with d the lesser of 1/2 and (1 + step) / (10 + step).
    """

    def model_fn():
        weights = slim.model_variable("weights", [3, 3], initializer=tf.ones_initializer())
        tf.losses.add_loss(tf.reduce_sum(tf.square(weights)) / 2)

    update = moving_average_update(0.5, tf.train.get_or_create_global_step())
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    model = deploy(LogicalDevices(), model_fn, optimizer=optimizer, update_ops=[update])
    train(model, tmp_path, max_steps=3, session_config=cpu_config())
    average = 1.0
    for step, weight in ((1, 1 / 2), (2, 1 / 4), (3, 1 / 8)):
        decay = min(0.5, (1 + step) / (10 + step))
        average = decay * average + (1 - decay) * weight
    for use_averages, expected in ((True, average), (False, 1 / 8)):
        accuracy = evaluate(_predict_weights_near(expected), tmp_path, use_averages=use_averages)
        assert accuracy == (1.0, 7, 3)


def _predict_weights_near(expected):
    """A `predict` that is right everywhere if all weights are `expected`, to 1e-6."""

    def predict():
        _, labels = _predict()
        [weights] = slim.get_model_variables()
        near = tf.reduce_all(tf.abs(weights - expected) < 1e-6)
        return tf.one_hot(tf.where(near, labels, labels + 1), 4), labels

    return predict


def test_needs_a_checkpoint(tmp_path):
    """An empty folder cannot be evaluated."""
    with pytest.raises(
        ValueError, match=f"train_dir must hold a checkpoint, got none in {tmp_path}"
    ):
        evaluate(_predict, tmp_path)


def test_needs_examples(tmp_path):
    """No examples have no accuracy."""

    def predict():
        logits, labels = _predict()
        return logits[:0], labels[:0]

    _save(tmp_path, np.eye(3), 1)
    with pytest.raises(ValueError, match="at least one example, got none"):
        evaluate(predict, tmp_path)
