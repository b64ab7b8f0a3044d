"""Runs that accumulate gradients: examples, checkpoints, resume, TF-Slim's loop and ours."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import (
    DeploymentConfig,
    create_clones,
    deploy,
    inputs,
    random_by_step,
    slim,
    train,
)
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, feed_clones
from tests.inputs import sessions

SGD = tf.train.GradientDescentOptimizer


def _mlp(config):
    model_fn = feed_clones(GOLDENS["slim_mlp"], config.batches_per_step)
    return deploy(config, model_fn, optimizer=SGD(0.1))


def _digits_model(parts, copy=False, num_clones=1):
    """LeNet's layers with dropout on batches of 32 digits in a step, of `num_clones` * `parts`."""
    config = LogicalDevices(num_clones=num_clones, accumulate_steps=parts, copy_clones=copy)
    step = tf.train.get_or_create_global_step()
    batches = inputs.train_batches(
        inputs.get_dataset("digits", "train"),
        preprocessing="lenet",
        batch_size=32 // config.batches_per_step,
        position=step,
        **config.input_arguments(),
    )

    def model_fn(batches):
        batch = next(batches)
        net = slim.fully_connected(slim.flatten(batch["image"]), 16, scope="hidden")
        net = slim.dropout(net, 0.5)
        logits = slim.fully_connected(net, 10, None, scope="logits")
        tf.losses.sparse_softmax_cross_entropy(batch["label"], logits)

    rate = tf.train.exponential_decay(0.01, step, 5, 0.5, staircase=True)
    return deploy(
        config, random_by_step(model_fn), [batches], optimizer=tf.train.AdamOptimizer(rate)
    )


def _run(folder, steps, **options):
    """Trains up to a step; returns all values of the last checkpoint."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        model = _digits_model(**options)
        train(model, folder, max_steps=steps, session_config=cpu_config(2))
    path = tf.train.latest_checkpoint(str(folder))
    return {name: tf.train.load_variable(path, name) for name, _ in tf.train.list_variables(path)}


@pytest.mark.slow
@pytest.mark.one_mode
def test_a_resumed_run_is_one_that_was_not_stopped(tmp_path):
    """A run that goes on from a checkpoint ends with the same bits; a step is an update. Names and
    shapes in a checkpoint do not depend on the number of parts: a run can change.
    """
    options = {"parts": 2, "num_clones": 2, "copy": True}
    whole = _run(tmp_path / "whole", 9, **options)
    assert _run(tmp_path / "parts", 4, **options)["global_step"] == 4
    resumed = _run(tmp_path / "parts", 9, **options)
    assert resumed.keys() == whole.keys()
    assert whole["global_step"] == 9
    for name, value in whole.items():
        np.testing.assert_array_equal(resumed[name], value, err_msg=name)
    one = _run(tmp_path / "parts", 10, parts=1)
    assert [value.shape for value in one.values()] == [value.shape for value in whole.values()]
    assert one.keys() == whole.keys()


@pytest.mark.slow
@pytest.mark.one_mode
def test_parts_take_the_examples_of_one_batch():
    """Two clones with two batches of 4 get the 16 examples that one clone gets, in each step."""

    digits = inputs.get_dataset("digits", "train")

    def build():
        config = DeploymentConfig(num_clones=2, accumulate_steps=2, clone_on_cpu=True)
        options = {"batch_size": 4, "include_index": True, **config.input_arguments()}
        batches = inputs.train_batches(digits, preprocessing="lenet", **options)
        clones = create_clones(config, lambda: next(batches)["index"])
        return tf.concat([clone.outputs for clone in clones], axis=0)

    found = [step.tolist() for step in sessions.collect(build, 100)]  # of 89 an epoch
    assert found == sessions.train_indices(digits, 100, batch_size=16)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["together", "asynchronous"])
def test_train_names_the_clone_of_a_bad_loss(tmp_path, asynchronous):
    """A loss that is not finite is reported with its clone, whichever of its parts it is of."""
    values = iter([1.0, 1.0, 1.0, float("nan")])

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        tf.losses.add_loss(weight * next(values))

    config = LogicalDevices(num_clones=2, accumulate_steps=2)
    model = deploy(config, model_fn, optimizer=SGD(0.1), asynchronous=asynchronous)
    message = "got nan at step" if asynchronous else "got nan at step 1, in clone 1"
    with pytest.raises(FloatingPointError, match=message):
        train(model, tmp_path, max_steps=3, session_config=cpu_config(2))


# tf-slim closes the events while its summary thread may still be at work.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Attempting to use a closed FileWriter:UserWarning")
def test_slim_trains_it(tmp_path):
    """`slim.learning.train` makes one update of all batches with each step."""
    model = _mlp(LogicalDevices(num_clones=2, accumulate_steps=2))
    with tf.Graph().as_default():
        expected = _mlp(LogicalDevices())
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                last = session.run(expected.train_op)
    loss = slim.learning.train(
        model.train_op,
        str(tmp_path),
        number_of_steps=3,
        summary_op=model.summary_op,
        session_config=cpu_config(2),
    )
    assert loss == pytest.approx(last, rel=1e-5)
    assert tf.train.load_variable(str(tmp_path), "global_step") == 3
