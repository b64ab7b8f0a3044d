"""Where tables that are trained by rows are read: in models, in checkpoints, by later ops."""

import logging

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim, training
from model_deploy.checkpoints import CheckpointWriter
from model_deploy.optimization.rows import current_value
from tests import harness, laws
from tests.goldens import NUM_EXAMPLES, Golden, cpu_config, formula

ROWS = 40
_WORDS = np.arange(NUM_EXAMPLES * 5).reshape(NUM_EXAMPLES, 5) ** 2 * 3 % ROWS


def _model(features, labels, partitioner=None):
    """Looks up other rows in each step."""
    table = tf.get_variable("table", [ROWS, 3], initializer=formula, partitioner=partitioner)
    weights = tf.get_variable("weights", [3, 3], initializer=formula)
    step = tf.cast(tf.train.get_or_create_global_step().read_value(), tf.int64)
    words = (tf.cast(features, tf.int64) + 7 * step) % ROWS
    net = tf.reduce_mean(tf.nn.embedding_lookup(table, words), axis=1)
    tf.losses.sparse_softmax_cross_entropy(labels, tf.matmul(net, weights) + net)


def _parted(features, labels):
    _model(features, labels, tf.fixed_size_partitioner(2))


_MODELS = {
    name: Golden(name, _WORDS, np.arange(NUM_EXAMPLES) % 3, model, sparse=("table",))
    for name, model in (("whole", _model), ("parted", _parted))
}


def _row_adam():
    return training.RowAdamOptimizer(0.02, epsilon=1e-2)


class _Replica(harness.Replica):
    """Its values are those that a checkpoint would have, without the state of rows."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        with self.graph.as_default():
            for name, variable in self.variables.items():
                value = current_value(variable)
                self.variables[name] = variable if value is None else value

    def finish(self):
        super().finish()
        assert any("/last" in name for name in self.values), "not by rows"
        own = ("/last", "/history", "/steps", "loss_scale/")
        self.values = {
            name.removeprefix("clone_0/"): value
            for name, value in self.values.items()
            if not any(word in name for word in own)
        }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "settings", "name"),
    [
        ("together", {"copy_clones": True, "loss_scale": 1024}, "parted"),
        ("on servers", {"accumulate_steps": 2}, "parted"),
        pytest.param("each clone", {}, "whole", marks=pytest.mark.one_mode),
        pytest.param("replicas", {}, "whole", marks=pytest.mark.one_mode),
        pytest.param("each replica", {}, "whole", marks=pytest.mark.one_mode),
        pytest.param("all-reduce", {"clip_norm": 100.0}, "parted", marks=pytest.mark.one_mode),
        ("replicas by all-reduce", {}, "whole"),
    ],
)
def test_every_way_ends_where_dense_adam_ends(way, settings, name, monkeypatch):
    """Whatever divides a batch, tables, moments and losses are those of one clone with Adam."""
    model = _MODELS[name]
    one = harness.one_in_turn if way in laws.IN_TURN else harness.one_clone
    expected = one(model, harness.adam)
    monkeypatch.setattr(harness, "Replica", _Replica)
    monkeypatch.setattr(laws, "_optimizer", lambda feature: _row_adam)
    runs = laws._run(way, laws.Feature(settings), model)
    losses = laws._interleaved(runs) if way == "each replica" else runs[0].losses
    if way != "replicas by all-reduce":  # each of which has the loss of its own examples
        np.testing.assert_allclose(losses, expected.losses, rtol=2e-6)
    for run in runs:
        harness.assert_close(run.values, expected.values)


def _in_a_loop(table, ids):
    start = (tf.constant(0), tf.zeros([2]))
    return tf.while_loop(
        lambda i, _: i < 2, lambda i, total: (i + 1, total + tf.gather(table, ids[i])), start
    )[1]


_READS = {
    "gather": (True, tf.gather),
    "look-up": (True, tf.nn.embedding_lookup),
    "gather of the value, as in Keras": (True, lambda t, ids: tf.gather(t.read_value(), ids)),
    "several": (True, lambda t, ids: tf.gather(t, ids) + tf.gather(t, ids[::-1])),
    "in a loop": (None, _in_a_loop),
    "columns": (None, lambda t, ids: tf.gather(t.read_value(), [0, 1], axis=1)[:2]),
    "whole beside rows": (
        False,
        lambda t, ids: tf.gather(t, ids) * tf.stop_gradient(tf.reduce_sum(t)),
    ),
    "regularized": (False, lambda t, ids: tf.gather(t, ids) + slim.l2_regularizer(1.0)(t)),
}


@pytest.mark.parametrize("name", _READS)
def test_reads(name, caplog):
    """A table that is not read by gathers of rows alone is trained as by Adam, and a line says so;
    so is one whose gradient is dense, as a loop's may be.  In each case it ends where Adam ends.
    """
    is_by_rows, read = _READS[name]
    ids = tf.placeholder(tf.int64, [2])
    tables, updates, losses = [], [], []
    for number, optimizer in enumerate((tf.train.AdamOptimizer(0.1), _row_adam_of(0.1))):
        table = tf.get_variable(f"table_{number}", [5, 2], initializer=formula)
        loss = tf.reduce_sum(tf.square(read(table, ids) - 1))
        updates.append((optimizer, optimizer.compute_gradients(loss, [table])))
        losses.append(loss)
        tables.append(table)
    with caplog.at_level(logging.WARNING), tf.control_dependencies(losses):
        update = [optimizer.apply_gradients(pairs) for optimizer, pairs in updates]
    optimizer = updates[1][0]
    assert (optimizer.get_slot(tables[1], "last") is not None) == bool(is_by_rows)
    if is_by_rows is not None:
        assert ("table_1 is trained as a whole" in caplog.text) != is_by_rows
    current = optimizer.current(tables[1])
    rows = optimizer.rows(tables[1], [4, 0])
    with tf.Session(config=cpu_config(rewritten=False)) as session:
        session.run(tf.global_variables_initializer())
        for step in range(6):
            session.run(update, {ids: [step % 5, 3 * step % 5]})
        dense, found, found_rows = session.run([tables[0], current, rows])
    np.testing.assert_allclose(found, dense, atol=1e-6)
    np.testing.assert_allclose(found_rows, dense[[4, 0]], atol=1e-6)


def _row_adam_of(rate):
    return training.RowAdamOptimizer(rate)


def test_rejects_another_read_later():
    """A table that is trained by rows is not read otherwise by what is trained later."""
    table = tf.get_variable("table", [5, 2])
    optimizer = _row_adam()
    optimizer.minimize(tf.reduce_sum(tf.gather(table, [1])))
    loss = tf.reduce_sum(tf.gather(table, [1]) * tf.stop_gradient(tf.reduce_sum(table)))
    with pytest.raises(ValueError, match=r"table is trained by rows, .* got Sum Sum"):
        optimizer.minimize(loss)


def test_rejects_a_second_optimizer():
    """Rows are read with what they have missed by one optimizer."""
    loss = tf.reduce_sum(tf.gather(tf.get_variable("table", [5, 2]), [1]))
    _row_adam().minimize(loss)
    with pytest.raises(ValueError, match="table must be trained by one optimizer"):
        training.RowMomentumOptimizer(0.1, 0.9).minimize(loss)


def _trained(optimizer, num_rows=5, width=2):
    """A table, and a function of a session and a step that makes the step."""
    table = tf.get_variable("table", [num_rows, width], initializer=formula)
    ids = tf.placeholder(tf.int64, [2])
    update = optimizer.minimize(tf.reduce_sum(tf.square(tf.gather(table, ids) - 1)))

    def make(session, step):
        session.run(update, {ids: [step % num_rows, 3 * step % num_rows]})

    return table, make


@pytest.mark.one_mode
@pytest.mark.parametrize("part", [4, 1 << 22], ids=["part by part", "whole"])
def test_checkpoint(tmp_path, monkeypatch, part):
    """A checkpoint of the library has the table and the moments of Adam, under Adam's names, and
    training goes on from there.
    """
    monkeypatch.setattr("model_deploy.optimization.rows.tables._PART", part)
    values = {}
    for name, optimizer in (("dense", tf.train.AdamOptimizer(0.1)), ("rows", _row_adam_of(0.1))):
        with tf.Graph().as_default(), tf.Session(config=cpu_config(rewritten=False)) as session:
            table, make = _trained(optimizer)
            current = optimizer.current(table) if name == "rows" else table.read_value()
            writer = CheckpointWriter(str(tmp_path / name), keep=2)
            session.run(tf.global_variables_initializer())
            for step in range(7):
                make(session, step)
            path = writer.save(session, 7)
            reader = tf.train.load_checkpoint(path)
            values[name] = {
                key: reader.get_tensor(key) for key in ("table", "table/Adam", "table/Adam_1")
            }
            session.run(tf.global_variables_initializer())
            writer.saver.restore(session, path)
            for step in range(7, 14):
                make(session, step)
            values[name]["after"] = session.run(current)
    harness.assert_close(values["rows"], values["dense"])


@pytest.mark.one_mode
def test_own_saver_resumes_exactly(tmp_path):
    """What a program's own saver saves is the state as it is: to the last bit training goes on."""
    table, make = _trained(_row_adam_of(0.1))
    saver = tf.train.Saver()
    with tf.Session(config=cpu_config(rewritten=False)) as session:
        session.run(tf.global_variables_initializer())
        for step in range(7):
            make(session, step)
        path = saver.save(session, str(tmp_path / "own"))
        ends = []
        for _ in range(2):
            for step in range(7, 14):
                make(session, step)
            ends.append(session.run(table))
            saver.restore(session, path)
    np.testing.assert_array_equal(ends[0], ends[1])
