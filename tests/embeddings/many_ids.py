"""Makes rows for half a million ids, and prints how many there are and bytes of memory for each.

python -m tests.embeddings.many_ids
"""

import os

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, embeddings

NUM_IDS, WIDTH, STEPS = 500_000, 8, 20


def _bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    """Looks all ids up, a part of them in each step."""
    tf.disable_eager_execution()
    each = NUM_IDS // STEPS
    ids = tf.placeholder(tf.int64, [None])
    table = embeddings.GrowingTable(name="items", width=WIDTH, max_rows=NUM_IDS, new_per_step=each)

    def model_fn():
        tf.losses.add_loss(tf.reduce_mean(embeddings.look_up(table, ids)))

    optimizer = tf.train.GradientDescentOptimizer(0.1)
    model = deploy(DeploymentConfig(clone_on_cpu=True), model_fn, optimizer=optimizer)
    every = np.random.default_rng(0).permutation(NUM_IDS) * 977
    with tf.Session() as session:
        before = _bytes()
        session.run(tf.global_variables_initializer())
        for part in np.split(every, STEPS):
            session.run(model.train_op, {ids: part})
        used = session.run("items/index/ids/Read/ReadVariableOp:0")
        assert set(used[used >= 0]) == set(every)
        print((used >= 0).sum(), (_bytes() - before) // NUM_IDS)


if __name__ == "__main__":
    main()
