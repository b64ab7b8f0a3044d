"""The call that makes a step makes one, whichever of TensorFlow's ways it takes."""

import itertools
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy
from model_deploy.internals import inline_callable
from model_deploy.training.steps.call import StepCall
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, feed_clones

# More than the trials of both ways.
NUM_CALLS = 70


def counting(function):
    """A float64 counter that is one more in each run, after `function` was called."""
    count = tf.get_variable("count", [], tf.float64, tf.zeros_initializer(), use_resource=True)
    with tf.control_dependencies([tf.numpy_function(function, [], [])]):
        return tf.identity(count.assign_add(1.0))


@pytest.mark.one_mode
@pytest.mark.parametrize("is_remote", [False, True], ids=["this process", "server"])
def test_every_call_is_one_step(is_remote):
    """Trials and chosen calls alike run the fetch once; Python in the step is no obstacle."""
    step = counting(lambda: None)
    target = tf.train.Server.create_local_server().target if is_remote else ""
    with tf.Session(target, config=cpu_config()) as session:
        session.run(tf.global_variables_initializer())
        call = StepCall(session, step)
        assert [call() for _ in range(NUM_CALLS)] == list(range(1, NUM_CALLS + 1))


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("secs", "is_inline"),
    [
        pytest.param({"pooled": 0.003, "inline": 0.0}, False, id="long"),
        pytest.param({"pooled": 0.001, "inline": 0.0}, True, id="short, inline is faster"),
        pytest.param({"pooled": 0.0, "inline": 0.001}, False, id="short, the pool is faster"),
    ],
)
def test_the_faster_way_is_chosen(secs, is_inline):
    """A step of less than 2 ms runs in the calling thread if that is faster, others do not."""
    seen, now = [], [0.0]

    def note():
        way = "inline" if threading.get_ident() == here else "pooled"
        seen.append(way)
        now[0] += secs[way]

    here = threading.get_ident()
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 1})) as session:
        step = counting(note)
        session.run(tf.global_variables_initializer())
        call = StepCall(session, step, clock=lambda: now[0])
        for _ in range(NUM_CALLS):
            call()
    assert set(seen[60:]) == {"inline" if is_inline else "pooled"}


@pytest.mark.one_mode
@pytest.mark.parametrize("num_steps", [5, 45], ids=["in the pool", "inline"])
def test_errors_are_those_of_tensorflow(num_steps):
    """The end of the data is an `OutOfRangeError` in both ways, which are tried for 30 steps."""
    iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(num_steps))
    with tf.Session(config=cpu_config()) as session:
        call = StepCall(session, iterator.get_next(), clock=lambda: 0.0)
        assert [call() for _ in range(num_steps)] == list(range(num_steps))
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
            call()


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("name", "variable_kind"),
    list(zip(GOLDENS, itertools.cycle(["resource", "reference"]), strict=False)),
    indirect=["variable_kind"],
)
def test_both_ways_compute_the_same(name, variable_kind):
    """After 20 steps of two clones in either way all variables are equal, to the last bit."""
    optimizer = tf.train.AdamOptimizer(0.1)
    model = deploy(LogicalDevices(num_clones=2), feed_clones(GOLDENS[name], 2), optimizer=optimizer)
    found = []
    for callable_of in (tf.Session.make_callable, inline_callable):
        with tf.Session(config=cpu_config()) as session:
            session.run(tf.global_variables_initializer())
            step = callable_of(session, model.train_op)
            losses = [step() for _ in range(20)]
            found.append([losses, *session.run(tf.global_variables())])
    assert found[0][0][0] > found[0][0][-1]
    for pooled, inline in zip(*found, strict=True):
        np.testing.assert_array_equal(pooled, inline)
