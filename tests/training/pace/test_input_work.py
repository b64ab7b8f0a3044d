"""How long pipelines work for a batch, as TensorFlow measures it."""

import time
from unittest import mock

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.internals import PipelineNode
from model_deploy.training.pace import input_work
from model_deploy.training.pace.input_work import HAS_MODELS, InputWork, work_between

SECS, BATCHES = 0.02, 10


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param({}, 0.0, id="nothing"),
        # A batch of 1 s, in the thread of whoever takes it, of a stage of 2 s.
        pytest.param({1: (1, 1, False, [2]), 2: (2, 1, False, [])}, 3.0, id="one thread"),
        pytest.param({1: (1, 1, False, [2]), 2: (2, 1, True, [])}, 2.0, id="two threads"),
        pytest.param({1: (1, 1, True, [2]), 2: (8, 4, True, [])}, 2.0, id="four threads"),
    ],
)
def test_the_busiest_thread(nodes, expected):
    """Stages without threads of their own add up; threads work at the same time."""
    after = {
        name: PipelineNode(busy, 1, 1, threads, own, tuple(inputs))
        for name, (busy, threads, own, inputs) in sorted(nodes.items(), reverse=True)
    }
    assert work_between({}, after) == expected
    assert work_between(after, after) == 0


def test_a_buffer_that_is_filled():
    """Work for batches that nobody has taken yet does not count: of 4 s for 8 batches 0.5 s."""
    before = {2: PipelineNode(1, 10, 12, 1, True, ()), 1: PipelineNode(0, 10, 10, 1, False, (2,))}
    after = {2: PipelineNode(5, 11, 20, 1, True, ()), 1: PipelineNode(0, 11, 11, 1, False, (2,))}
    assert work_between(before, after) == 0.5


@pytest.mark.skipif(not HAS_MODELS, reason="TensorFlow 2.16 does not tell")
@pytest.mark.parametrize("threads", [None, 2])
@pytest.mark.one_mode
def test_work_that_nobody_waits_for(threads):
    """Batches that are ready when they are taken have taken their time all the same."""

    def load(number):
        time.sleep(SECS)
        return np.float32(number)

    dataset = tf.data.Dataset.range(1000)
    dataset = dataset.map(
        lambda number: tf.numpy_function(load, [number], tf.float32), num_parallel_calls=threads
    )
    iterator = tf.data.make_initializable_iterator(dataset.prefetch(2))
    batch = iterator.get_next()
    work = InputWork([batch.op, iterator.initializer])
    with tf.Session() as session:
        assert work.secs(session) == 0  # it is not initialized
        session.run(iterator.initializer)
        session.run(batch)
        before = work.secs(session)
        for _ in range(BATCHES):
            time.sleep(2 * SECS)
            session.run(batch)
        found = work.secs(session) - before
    assert BATCHES * SECS / 4 < found < BATCHES * SECS * 2


def test_where_tensorflow_does_not_tell(monkeypatch):
    """Nothing is known of the pipelines of TensorFlow 2.16, and its graph gets no op."""
    monkeypatch.setattr(input_work, "HAS_MODELS", False)
    batch = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
    with mock.patch.object(tf, "raw_ops", None):
        assert InputWork([batch.op]).secs(None) == 0


def test_without_a_pipeline():
    """Other ops have no pipeline."""
    assert InputWork([tf.constant(1.0).op]).secs(None) == 0
