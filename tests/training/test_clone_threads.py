"""Asynchronous clones: one thread each, none waits for another, every update counts once."""

import json
import threading
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, inputs, slim, train
from model_deploy.training import Evaluator
from tests.goldens import LogicalDevices, cpu_config


def model_of(model_fn, num_clones=2, rate=0.5):
    """An asynchronous model."""
    optimizer = tf.train.GradientDescentOptimizer(rate)
    config = LogicalDevices(num_clones=num_clones)
    return deploy(config, model_fn, optimizer=optimizer, asynchronous=True)


def halve(factor=1.0):
    """The loss w^2 / 2 from w = 1."""
    weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
    tf.losses.add_loss(factor * tf.square(weight) / 2)


def metrics_of(train_dir):
    return [json.loads(line) for line in (train_dir / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.one_mode
def test_every_update_counts_once(tmp_path, variable_kind, capsys):
    """50 updates of 4 clones are 50 steps, in the variable, the log and the checkpoint; a second
    run starts at the step of the first one.
    """

    def model_fn():
        count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
        tf.losses.add_loss(-count)  # each update adds rate = 1

    options = {"session_config": cpu_config(), "log_every_n_steps": 25}
    for last in (25, 50):
        with tf.Graph().as_default():
            model = model_of(model_fn, num_clones=4, rate=1.0)
            assert train(model, tmp_path, max_steps=last, **options).global_step == last
    reader = tf.train.load_checkpoint(str(tmp_path / "model.ckpt-50"))
    assert reader.get_tensor("global_step") == 50
    if variable_kind == "resource":  # several at a time may add to a reference variable
        assert reader.get_tensor("count") == 50
    entries = metrics_of(tmp_path)
    assert [entry["step"] for entry in entries] == [25, 50]
    assert [entry["local_step"] for entry in entries] == [25, 25]
    assert all(0 <= entry["staleness_median"] <= entry["staleness_max"] for entry in entries)
    assert "local step 25  staleness " in capsys.readouterr().err


@pytest.mark.one_mode
def test_nobody_waits(tmp_path):
    """While one clone is held up in its first step, the other makes 20."""
    began, held, calls = threading.Event(), threading.Event(), []
    holds = iter([True, False])

    def wait(value):
        began.set()
        assert held.wait(timeout=60)
        return value

    def count(value):
        assert began.wait(timeout=60)  # threads may start late
        if not calls:
            time.sleep(1)  # for the held clone's step, which is read beside the held op
        calls.append(None)
        if len(calls) == 20:
            held.set()  # only now may the first clone go on
        return value

    def model_fn():
        function = wait if next(holds) else count
        halve(tf.reshape(tf.numpy_function(function, [1.0], tf.float32), []))

    result = train(model_of(model_fn), tmp_path, max_steps=21, session_config=cpu_config())
    assert result.global_step == 21
    assert len(calls) >= 20
    stale = max(entry["staleness_max"] for entry in metrics_of(tmp_path))
    # Of the gradient that was held up; its step may be read after the first few of the 20 updates.
    assert 10 <= stale <= 20


@pytest.mark.one_mode
def test_nan_in_one_clone_stops_all(tmp_path):
    """A loss that is NaN in one clone ends the run, and its threads."""
    before = threading.active_count()
    factors = iter([1.0, np.nan])
    model = model_of(lambda: halve(next(factors)))
    with pytest.raises(FloatingPointError, match="the loss must be finite, got nan at step"):
        train(model, tmp_path, max_steps=1000, session_config=cpu_config())
    assert threading.active_count() == before
    assert not list(tmp_path.glob("model.ckpt-*"))


def test_the_end_of_the_inputs(tmp_path):
    """The run ends when the inputs of all clones have ended: 2 + 5 steps."""
    lengths = iter([2, 5])

    def model_fn():
        dataset = tf.data.Dataset.range(next(lengths))
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        halve(1 + 0 * tf.cast(iterator.get_next(), tf.float32))

    result = train(model_of(model_fn), tmp_path, max_steps=100, session_config=cpu_config())
    assert result.global_step == 7


@pytest.mark.one_mode
def test_hooks_beside_the_steps(tmp_path):
    """Hooks see each step once, fetch what they want, and can end the run."""

    class Hook(tf.train.SessionRunHook):
        seen = ()

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(tf.constant(7))

        def after_run(self, run_context, run_values):
            assert run_values.results == 7
            self.seen += (run_context.report.step,)
            if len(self.seen) == 6:
                run_context.request_stop()

    hook = Hook()
    result = train(model_of(halve), tmp_path, hooks=[hook], session_config=cpu_config())
    assert hook.seen == (1, 2, 3, 4, 5, 6)
    assert result.global_step >= 6
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.get_tensor("global_step") == result.global_step


@pytest.mark.slow
@pytest.mark.one_mode
def test_it_learns_as_synchronous_clones_do(tmp_path):
    """On digits, as many examples give an accuracy within 0.03 of that of synchronous clones."""
    accuracies = {}
    digits, held_out = (inputs.get_dataset("digits", split) for split in ("train", "test"))
    options = {"preprocessing": "lenet", "num_shards": 2}

    def logits_of(batch):
        return slim.fully_connected(slim.flatten(batch["image"]), 10, None, scope="fc")

    def model_fn(pipelines):
        batch = next(next(pipelines))
        tf.losses.sparse_softmax_cross_entropy(batch["label"], logits_of(batch))

    for asynchronous in (False, True):
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            # A pipeline of its own for each clone, so that none takes another one's batches.
            own = [inputs.train_batches(digits, shard_index=i, **options) for i in range(2)]
            model = deploy(
                LogicalDevices(num_clones=2),
                model_fn,
                [iter(own)],
                optimizer=tf.train.AdamOptimizer(0.003),
                asynchronous=asynchronous,
            )
            folder = tmp_path / str(asynchronous)
            steps = 400 if asynchronous else 200
            train(model, folder, max_steps=steps, session_config=cpu_config())
        with Evaluator(
            lambda batch: (logits_of(batch), batch["label"]),
            lambda: next(inputs.eval_batches(held_out, preprocessing="lenet")),
        ) as evaluator:
            accuracies[asynchronous] = evaluator.evaluate(folder).accuracy
    assert min(accuracies.values()) > 0.85
    assert abs(accuracies[True] - accuracies[False]) < 0.03


@pytest.mark.one_mode
def test_rates_are_those_of_the_steps_and_not_of_their_reports(tmp_path):
    """Two clones with steps of 20 ms make 100 a second at most, those during an evaluation too."""

    def wait(value):
        time.sleep(0.02)
        return value

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        one = tf.numpy_function(wait, [tf.constant(1.0)], tf.float32)
        tf.losses.add_loss(tf.square(weight) * tf.reshape(one, []))

    def evaluate(checkpoint):
        time.sleep(0.5)
        return {"accuracy": 0.5}

    options = {"log_every_n_steps": 10, "eval_every_n_steps": 20, "images_per_step": 1}
    model = model_of(model_fn, rate=0.01)
    train(model, tmp_path, max_steps=80, evaluate=evaluate, session_config=cpu_config(), **options)
    rates = [entry["images_per_sec"] for entry in metrics_of(tmp_path) if "loss" in entry]
    assert len(rates) == 8
    assert 0 < min(rates) < max(rates) < 110
