"""What a copied `model_fn` may take from Python: iterators; and what is an error."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import create_clones
from model_deploy import split_batch as split
from tests.goldens import LogicalDevices, cpu_config


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda batch: iter(split(batch, 2)), id="split_batch"),
        pytest.param(lambda batch: (part for part in split(batch, 2)), id="generator"),
        pytest.param(lambda batch: zip(split(batch, 2), strict=True), id="zip"),
    ],
)
@pytest.mark.parametrize("way", ["args", "kwargs", "partial", "nested", "method"])
def test_each_clone_gets_its_batch(make, way):
    """An iterator is advanced for each clone, however it reaches `model_fn`."""

    class Model:
        def __call__(self, batches):
            return tf.add_n(tf.nest.flatten(next(batches)))

        build = __call__

    batches = make({"x": tf.range(4), "y": tf.range(10, 14)})
    model_fn, args, kwargs = {
        "args": (Model(), [batches], None),
        "kwargs": (Model(), None, {"batches": batches}),
        "partial": (functools.partial(Model(), batches), None, None),
        "nested": (lambda settings: Model()(settings["data"][0]), [{"data": [batches]}], None),
        "method": (Model().build, [batches], None),
    }[way]
    config = LogicalDevices(num_clones=2, copy_clones=True)
    clones = create_clones(config, model_fn, args, kwargs)
    with tf.Session(config=cpu_config(2)) as session:
        values = session.run([clone.outputs for clone in clones])
    assert [value.tolist() for value in values] == [[10, 12], [14, 16]]


def test_a_queue_outside_serves_each_clone():
    """Each clone takes another element from a queue that was made outside."""
    queue = tf.FIFOQueue(4, [tf.int32], shapes=[[]])
    fill = queue.enqueue_many([[1, 2, 3, 4]])
    config = LogicalDevices(num_clones=4, copy_clones=True)
    clones = create_clones(config, lambda q: q.dequeue() * 10, [queue])
    with tf.Session(config=cpu_config(4)) as session:
        session.run(fill)
        assert sorted(session.run([c.outputs for c in clones])) == [10, 20, 30, 40]


def _changes(thing):
    def model_fn():
        thing.append(tf.ones([]))

    return model_fn


class _Tensors:
    def __init__(self):
        self.logits = tf.ones([])


class _Counting:
    def __init__(self):
        self.calls = 0

    def build(self):
        self.calls += 1


class _Holding:
    def __init__(self):
        self.batches = iter([])

    def build(self):
        return self.batches


def _queue():
    return tf.FIFOQueue(1, [tf.float32]).dequeue()


def _dataset():
    return tf.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()


def _closed_over():
    batches = iter([])
    return lambda: next(batches)


@pytest.mark.parametrize(
    ("make_model_fn", "message"),
    [
        pytest.param(_closed_over, "iterators as arguments, got 'batches'", id="closure"),
        pytest.param(lambda: _Holding().build, "got '_Holding.batches'", id="attribute"),
        pytest.param(lambda: _changes([]), "leave Python .* a change of 'thing'", id="list"),
        pytest.param(lambda: _Counting().build, "a change of '_Counting.calls'", id="counter"),
        pytest.param(lambda: _queue, "queues, iterators and tables from outside", id="queue"),
        pytest.param(lambda: _dataset, "got clone_0/.* of type OneShotIterator", id="dataset"),
        pytest.param(
            lambda: lambda: tf.Variable(1.0, name="mine"),
            r"share its variables .* got clone_0/mine",
            id="variable",
        ),
        pytest.param(lambda: _Tensors, "got _Tensors with a tensor in 'logits'", id="outputs"),
    ],
)
def test_what_cannot_be_copied_says_why(make_model_fn, message, variable_kind):
    """The error says what cannot be copied, and that the clones can be called."""
    config = LogicalDevices(num_clones=2, copy_clones=True)
    model_fn = make_model_fn()
    with pytest.raises(ValueError, match=f"copied model_fn must.*{message}.*copy_clones=False"):
        create_clones(config, model_fn)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        pytest.param(lambda: [0, 1], "got the Python values 0 and 1", id="numbers"),
        pytest.param(
            lambda: [np.zeros([9, 9]), np.ones([9, 9])], "got the Python values array", id="arrays"
        ),
        pytest.param(
            lambda: [tf.ones([2]), tf.ones([3])],
            r"same type and shape .* float32 \(2,\) .* float32 \(3,\)",
            id="shapes",
        ),
        pytest.param(
            lambda: [{"x": tf.ones([2])}, {"y": tf.ones([2])}], "the same structure", id="keys"
        ),
    ],
)
def test_what_iterators_may_not_give(items, message):
    """Values that a copy could not tell apart are errors."""
    config = LogicalDevices(num_clones=2, copy_clones=True)
    with pytest.raises(ValueError, match=message) as error:
        create_clones(config, next, [iter(items())])
    assert "\n" not in str(error.value)


def test_a_tensor_taken_twice_stands_for_one():
    """Where the first clone takes a tensor twice, so must the others."""
    a, b, c = tf.ones([]), tf.ones([]), tf.ones([])
    config = LogicalDevices(num_clones=2, copy_clones=True)
    with pytest.raises(ValueError, match=r"take each tensor once .* twice in the first clone"):
        create_clones(config, lambda x: next(x) + next(x), [iter([a, a, b, c])])


def test_equal_python_values_may_come_from_iterators():
    """Settings that are the same for each clone can be taken as they are."""
    items = iter([(tf.ones([2]), 3, np.arange(2)), (tf.zeros([2]), 3, np.arange(2))])
    config = LogicalDevices(num_clones=2, copy_clones=True)
    clones = create_clones(config, lambda x: next(x)[0] * 2, [items])
    with tf.Session(config=cpu_config(2)) as session:
        assert session.run([c.outputs for c in clones])[1].tolist() == [0, 0]
