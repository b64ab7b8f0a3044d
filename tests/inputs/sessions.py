"""Runs input pipelines in sessions of their own."""

import numpy as np
import tensorflow as tf

from model_deploy import inputs
from tests.goldens import cpu_config

tf1 = tf.compat.v1


def _session():
    """A session without the rewriting of graphs, which takes a third of the time of a pipeline.

    Graphs of programs and of `train` are rewritten.
    """
    return tf1.Session(config=cpu_config(rewritten=False))


def run(build):
    """The value of the tensors that `build` makes."""
    [value] = collect(build, 1)
    return value


def assert_same(found, expected):
    """Lists of batches, or of steps of them, are the same, bit for bit."""
    assert len(found) == len(expected) > 0
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_array_equal(one, other)


def seeds_of(count, first=0):
    """int64 [count, 2]: different seeds."""
    return np.stack([np.full([count], first), np.arange(count)], axis=1).astype(np.int64)


def collect(build, num_runs=None):
    """Runs what `build` returns in a new graph, to the end or `num_runs` times.

    Returns the list of the fetched values.
    """
    with tf.Graph().as_default(), _session() as session:
        fetches = build()
        session.run(tf1.global_variables_initializer())
        session.run(tf1.tables_initializer())
        values = []
        try:
            while num_runs is None or len(values) < num_runs:
                values.append(session.run(fetches))
        except tf.errors.OutOfRangeError:
            pass
        return values


def train_values(dataset, num_runs=None, num_clones=1, **options):
    """The batches of `train_batches`: a list of steps, each a list of clone batches."""
    options = {"preprocessing": "lenet", "include_index": True} | options

    def build():
        batches = inputs.train_batches(dataset, num_clones=num_clones, **options)
        return [next(batches) for _ in range(num_clones)]

    return collect(build, num_runs)


def train_indices(dataset, num_runs=None, **options):
    """The numbers of the examples in each step, over the clones."""
    steps = train_values(dataset, num_runs, **options)
    return [[index for batch in step for index in batch["index"].tolist()] for step in steps]


def eval_values(dataset, **options):
    """The batches of `eval_batches`."""
    options = {"preprocessing": "lenet", "include_index": True} | options
    return collect(lambda: next(inputs.eval_batches(dataset, **options)))
