"""Training of a table whose rows rest for a while, by rows and by the dense optimizer."""

import functools

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import training
from tests.goldens import cpu_config

train = tf.train
STEPS, ROWS, WIDTH = 1000, 100, 3


def _rate(step):
    """Rises for 100 steps, and falls along a cosine; never quite 0, where FTRL divides by it."""
    risen = tf.minimum(tf.cast(step + 1, tf.float32) / 100, 1.0)
    return risen * train.cosine_decay(0.01, step, STEPS, alpha=0.1)


# Name -> functions of the rate: the dense optimizer, and the one by rows.
PAIRS = {
    "adam": (train.AdamOptimizer, training.RowAdamOptimizer),
    "adamw": (
        lambda rate: training.AdamWOptimizer(rate, 0.1),
        lambda rate: training.RowAdamWOptimizer(rate, 0.1),
    ),
    "momentum": (
        lambda rate: train.MomentumOptimizer(rate / 10, 0.9),
        lambda rate: training.RowMomentumOptimizer(rate / 10, 0.9),
    ),
    "nesterov": (
        lambda rate: train.MomentumOptimizer(rate / 10, 0.9, use_nesterov=True),
        lambda rate: training.RowMomentumOptimizer(rate / 10, 0.9, use_nesterov=True),
    ),
    "rmsprop": (
        lambda rate: train.RMSPropOptimizer(rate / 10, 0.9, 0.9),
        lambda rate: training.RowRMSPropOptimizer(rate / 10, 0.9, 0.9),
    ),
    "centered": (
        lambda rate: train.RMSPropOptimizer(rate, 0.95, epsilon=1e-3, centered=True),
        lambda rate: training.RowRMSPropOptimizer(rate, 0.95, epsilon=1e-3, centered=True),
    ),
    "ftrl": (
        lambda rate: train.FtrlOptimizer(rate, -0.4, 0.2, 0.01, 0.02, beta=0.1),
        lambda rate: training.RowFtrlOptimizer(rate, -0.4, 0.2, 0.01, 0.02, beta=0.1),
    ),
    "ftrl that shrinks": (
        lambda rate: train.FtrlOptimizer(
            rate, -0.5, 0.1, 0.01, 0.1, l2_shrinkage_regularization_strength=0.5
        ),
        lambda rate: training.RowFtrlOptimizer(
            rate, -0.5, 0.1, 0.01, 0.1, l2_shrinkage_regularization_strength=0.5
        ),
    ),
}


@functools.cache
def batches():
    """For each step some rows, which may repeat, and their gradients, of sizes 1e-6 to 10.

    Each row rests for a number of steps of its own, of 1 to 900; one is never used.
    """
    generator = np.random.default_rng(0)
    used = [[] for _ in range(STEPS)]
    for row in range(1, ROWS):
        rest = int(generator.integers(1, 20 if row % 3 == 0 else 901))
        for step in range(int(generator.integers(rest)), STEPS, rest):
            used[step] += [row] * (1 + row % 2)
    for step, rows in enumerate(used):
        sizes = 10.0 ** generator.uniform(-6, 1, [len(rows), 1])
        gradients = sizes * generator.normal(size=[len(rows), WIDTH])
        used[step] = np.array(rows, np.int64), gradients.astype(np.float32)
    return used


class Tables:
    """A table for each optimizer, in one graph; `step` trains all.

    Attributes:
      looked_up, current: rows and whole tables, by the name of the optimizer.
    """

    def __init__(self, pairs, names, dtype=tf.float32):
        start = 0.1 * np.random.default_rng(1).normal(size=[ROWS, WIDTH])
        self._rows = tf.placeholder(tf.int64, [None])
        self._gradients = tf.placeholder(tf.float32, [None, WIDTH])
        given = tf.cast(self._gradients, dtype)
        count = train.get_or_create_global_step()
        rate = _rate(count)
        self.looked_up, self.current, updates = {}, {}, []
        for name in names:
            table = tf.get_variable(name.replace(" ", "_"), initializer=tf.constant(start, dtype))
            looked_up = tf.identity(tf.nn.embedding_lookup(table, self._rows))
            gradient = tf.IndexedSlices(given, self._rows, [ROWS, WIDTH])
            optimizer = pairs[name](rate)
            if not hasattr(optimizer, "current"):
                gradient = tf.math.unsorted_segment_sum(given, self._rows, ROWS)
            with tf.control_dependencies([looked_up, rate]):
                updates.append(optimizer.apply_gradients([(gradient, table)]))
            self.looked_up[name] = looked_up
            current = getattr(optimizer, "current", lambda table: table.read_value())
            self.current[name] = current(table)
        with tf.control_dependencies(updates):
            self._update = count.assign_add(1)

    def step(self, session, step):
        """Makes a step; returns what was looked up before it."""
        rows, gradients = batches()[step]
        feeds = {self._rows: rows, self._gradients: gradients}
        return session.run([self.looked_up, self._update], feeds)[0]


def run(by_rows, dtype=tf.float32, steps=STEPS):
    """Trains tables of all optimizers; returns those, and what was looked up, by name."""
    with tf.Graph().as_default(), tf.Session(config=cpu_config(rewritten=False)) as session:
        tables = Tables({name: pair[by_rows] for name, pair in PAIRS.items()}, PAIRS, dtype)
        session.run(tf.global_variables_initializer())
        seen = [tables.step(session, step) for step in range(steps)]
        looked_up = {name: np.concatenate([each[name] for each in seen]) for name in PAIRS}
        return session.run(tables.current), looked_up
