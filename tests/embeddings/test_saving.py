"""Tables in checkpoints: gone on with to the last bit, on other parameter servers, with limits."""

import functools
import os
import subprocess
import sys
import tempfile
import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, embeddings
from model_deploy.checkpoints import CheckpointWriter, Restorer, changes_since, merge
from model_deploy.checkpoints.files import check_fits
from model_deploy.checkpoints.resuming import checkpoint_to_resume
from model_deploy.training import RowAdamOptimizer
from tests import clusters, harness
from tests.checkpoint_values import checkpoint_values
from tests.embeddings import models
from tests.goldens import LogicalDevices

# Variables of tables are resource variables in both modes.
pytestmark = pytest.mark.one_mode

_SERVERS = {"num_ps_tasks": 2}
_HALF = models.STEPS // 2


class _Run(harness.Replica):
    """A replica that saves and restores as `train` does."""

    def resume(self, folder, steps, target="", first=None):
        """Goes on from a checkpoint, or starts; saves at the end."""
        with self.graph.as_default():
            if first:
                check_fits(first)
            writer = CheckpointWriter(str(folder), 5)
            with self.open(target) as session:
                if first:
                    writer.saver_of(first).restore(session, first)
                self.start()
                for _ in range(steps):
                    self.step()
                self.finish()
                self.path = writer.save(session, self.steps[-1])
        return self


def _run(config, table, folder, steps, first=None, *, make=harness.adam):
    target = ""
    if config.num_ps_tasks:
        [target] = clusters.workers(1)
    run = _Run(config, models.golden(table), make)
    return run.resume(folder, steps, target, first)


@functools.cache
def _whole(table, *, on_servers=False):
    """The end of a run that nothing interrupts: losses and values, and those of the checkpoint."""
    config = LogicalDevices(**(_SERVERS if on_servers else {}))
    with tempfile.TemporaryDirectory() as folder:
        run = _run(config, table, folder, models.STEPS)
        return types.SimpleNamespace(losses=run.losses, values=run.values, saved=_saved(run))


def _saved(run):
    """The values of a run's checkpoint, those of the table by id."""
    return models.by_id(checkpoint_values(run.path))


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(models.growing(max_rows=9, new_per_step=21), id="full"),
        pytest.param(models.growing(min_steps=2), id="rare"),
    ],
)
def test_resume_is_exact_to_the_last_bit(table, tmp_path):
    """A run that ends and goes on has the rows, slots and free rows of one that did not end."""
    first = _run(LogicalDevices(), table, tmp_path / "first", _HALF)
    second = _run(LogicalDevices(), table, tmp_path, models.STEPS - _HALF, first.path)
    second.losses = first.losses + second.losses
    harness.assert_equal(second, _whole(table))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(_SERVERS, {}, id="to one process"),
        pytest.param({}, _SERVERS, id="to two servers"),
    ],
)
def test_other_parameter_servers_have_the_same_rows(before, after, tmp_path):
    """On another number of parameter servers a run ends with the rows of one that did not move."""
    table = models.growing(min_steps=2)
    first = _run(LogicalDevices(**before), table, tmp_path / "first", _HALF)
    rest = models.STEPS - _HALF
    second = _run(LogicalDevices(**after), table, tmp_path, rest, first.path)
    harness.assert_close(models.by_id(second.values), models.by_id(_whole(table).values))


def test_limits_may_change(tmp_path):
    """A table that may have more rows goes on with all that it has; with too few it is refused."""
    first = _run(LogicalDevices(), models.growing(max_rows=22), tmp_path / "first", models.STEPS)
    larger = _run(LogicalDevices(), models.growing(max_rows=50), tmp_path, 1, first.path)
    expected = models.by_id(first.values).keys()
    assert expected == models.by_id(larger.values).keys()
    too_few = models.growing(max_rows=4, new_per_step=4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_rows must be enough"):
        _run(LogicalDevices(), too_few, tmp_path / "few", 1, first.path)


def test_another_width_is_named(tmp_path):
    """A checkpoint of a table of another width is refused in one line, and stays as it is."""
    first = _run(LogicalDevices(), models.growing(), tmp_path, 1)
    wider = embeddings.GrowingTable(name="items", width=5, max_rows=64)
    with tf.Graph().as_default():
        embeddings.look_up(wider, tf.constant([1]))
        message = "table items: width must be 4 as in the checkpoint, got 5"
        with pytest.raises(ValueError, match=message):
            check_fits(first.path)
    assert tf.train.NewCheckpointReader(first.path).has_tensor("items/values")


@pytest.mark.parametrize("fields", [{}, _SERVERS], ids=str)
def test_evaluation_reads_the_rows_of_any_layout(fields, tmp_path):
    """In a process alone a restored table gives the rows of a run on servers, and makes none."""
    run = _run(LogicalDevices(**fields), models.growing(), tmp_path, models.STEPS)
    values = models.by_id(run.values)
    ids = [*range(models.IDS.max() + 1), 1000]
    with tf.Graph().as_default():
        rows = embeddings.look_up(models.growing(), tf.constant(ids), is_training=False)
        restorer = Restorer({variable.op.name: variable for variable in tf.global_variables()})
        with tf.Session() as session:
            restorer.restore(session, run.path)
            found = session.run(rows)
            again = session.run(rows)
    expected = [values.get(f"items/values[{i}]", values["items/shared"]) for i in ids]
    np.testing.assert_array_equal(found, np.stack(expected))
    np.testing.assert_array_equal(again, found)


class _Interrupted(_Run):
    """A replica that saves at each step, while it makes the next, and ends without saving."""

    def run(self, folder, steps, target="", first=None, **settings):
        """Makes steps, each of which is saved, after what a folder has is restored."""
        with self.graph.as_default():
            writer = CheckpointWriter(str(folder), 5, in_background=True, **settings)
            with self.open(target) as session:
                if first:
                    writer.saver_of(first).restore(session, first)
                    writer.newest = first
                    writer.restore_changes(session, first)
                self.start()
                for _ in range(steps):
                    writer.save_soon(session, self.step())
                self.finish()
                writer.wait()
            self.newest = writer.newest
        return self


def _interrupted(config, table, folder, steps, first=None, **settings):
    target = ""
    if config.num_ps_tasks:
        [target] = clusters.workers(1)
    run = _Interrupted(config, models.golden(table), harness.momentum)
    return run.run(folder, steps, target, first, increments=10, **settings)


@functools.cache
def _whole_of_changes(table, *, on_servers):
    """The end of a run that saves changes, and that nothing interrupts."""
    with tempfile.TemporaryDirectory() as folder:
        config = LogicalDevices(**(_SERVERS if on_servers else {}))
        run = _interrupted(config, table, folder, models.STEPS)
        return types.SimpleNamespace(losses=run.losses, values=run.values)


@pytest.mark.parametrize(
    ("table", "fields", "by_servers"),
    [
        pytest.param(models.growing(max_rows=9, new_per_step=21), {}, False, id="full"),
        pytest.param(models.growing(min_steps=2), _SERVERS, True, id="rare, by servers"),
        pytest.param(models.growing(min_steps=2), _SERVERS, False, id="rare, by the chief"),
    ],
)
def test_changes_restore_what_was_lost(table, fields, by_servers, tmp_path):
    """A whole checkpoint of step 1 and the changes up to step 5 go on to the last bit."""
    config, settings = LogicalDevices(**fields), {"by_servers": by_servers}
    first = _interrupted(config, table, tmp_path, models.STEPS - 1, **settings)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"model.ckpt-1.index", "changes.ckpt-5.index"} < names
    assert "changes.ckpt-4.index" not in names  # changes are those since the whole one
    shards = max(1, by_servers * config.num_ps_tasks)
    assert f"model.ckpt-1.data-00000-of-{shards:05}" in names
    second = _interrupted(config, table, tmp_path, 1, first.newest, **settings)
    second.losses = first.losses + second.losses
    harness.assert_equal(second, _whole_of_changes(table, on_servers=bool(fields)))


def test_changes_are_merged(tmp_path):
    """Changes and their whole checkpoint become a whole one, which goes on on servers, too."""
    table = models.growing()
    first = _interrupted(LogicalDevices(), table, tmp_path, models.STEPS - 1)
    merged = merge(first.newest, changes_since(first.newest))
    assert tf.train.latest_checkpoint(str(tmp_path)) == merged == f"{tmp_path}/model.ckpt-5"
    assert changes_since(merged) is None
    second = _interrupted(LogicalDevices(**_SERVERS), table, tmp_path, 1, merged)
    whole = _whole_of_changes(table, on_servers=False)
    harness.assert_close(models.by_id(second.values), models.by_id(whole.values))


def test_a_checkpoint_that_is_named_is_taken_without_its_changes(tmp_path):
    """`resume=PATH` goes on from that step; beside changes of later steps it is refused."""
    table, config = models.growing(), LogicalDevices()
    first = _interrupted(config, table, tmp_path / "first", 4)
    message = r"no checkpoint after step 1 of resume=.*, got step 4, which the run would overwrite"
    with pytest.raises(ValueError, match=message):
        checkpoint_to_resume(str(tmp_path / "first"), first.newest)
    assert checkpoint_to_resume(str(tmp_path / "other"), first.newest) == first.newest
    second = _interrupted(config, table, tmp_path / "other", models.STEPS - 1, first.newest)
    second.losses = first.losses[:1] + second.losses
    harness.assert_equal(second, _whole_of_changes(table, on_servers=False))


def test_changes_are_small(tmp_path):
    """With a hundredth of the rows touched, changes have at most a tenth of the bytes."""
    num_rows = 20_000
    table = embeddings.GrowingTable(name="items", width=16, max_rows=num_rows)
    ids = tf.placeholder(tf.int64, [None])

    def model_fn():
        tf.losses.add_loss(tf.reduce_sum(embeddings.look_up(table, ids)))

    model = deploy(LogicalDevices(), model_fn, optimizer=tf.train.AdagradOptimizer(0.1))
    writer = CheckpointWriter(str(tmp_path), 5, increments=1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(model.train_op, {ids: np.arange(num_rows)})
        writer.try_to_save(session, 1)
        session.run(model.train_op, {ids: np.arange(num_rows // 100)})
        writer.try_to_save(session, 2)
    whole, changes = (
        sum(path.stat().st_size for path in tmp_path.glob(f"{name}-*"))
        for name in ("model.ckpt", "changes.ckpt")
    )
    assert changes < whole / 10


def test_a_whole_checkpoint_ends_the_changes_before_it(tmp_path):
    """Changes that a later whole checkpoint has are removed; those of another run stay."""
    (tmp_path / "changes.ckpt-1.index").write_text("of somebody else")
    run = _Interrupted(LogicalDevices(), models.golden(models.growing()), harness.momentum)
    run.run(tmp_path, 5, increments=2)
    names = {path.name for path in tmp_path.glob("*.index")}
    # Whole, changes, changes, whole, changes.
    assert names == {
        "model.ckpt-1.index",
        "changes.ckpt-1.index",
        "model.ckpt-4.index",
        "changes.ckpt-5.index",
    }


def test_changes_need_an_optimizer_of_rows(tmp_path):
    """An optimizer that changes all rows in each step is refused by name."""
    model_fn = models.golden(models.growing()).model_fn
    batch = tf.constant(models.IDS), tf.constant(models.LABELS)
    deploy(LogicalDevices(), model_fn, batch, optimizer=harness.adam())
    with pytest.raises(ValueError, match=r"AssignSubVariableOp of items/values; row_adam"):
        CheckpointWriter(str(tmp_path), 5, increments=1)


def _row_adam():
    return RowAdamOptimizer(0.02, epsilon=1e-2)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"num_clones": 2, **_SERVERS}, id="servers"),
        pytest.param({"num_clones": 2, "all_reduce": True}, id="all-reduce"),
    ],
)
def test_adam_by_rows_saves_what_adam_saves(fields, tmp_path):
    """Rows that are made, rest and are dropped are those of the dense optimizer in checkpoints."""
    table = models.growing(max_rows=9, new_per_step=21)
    expected = _whole(table, on_servers="num_ps_tasks" in fields).saved
    run = _run(LogicalDevices(**fields), table, tmp_path, models.STEPS, make=_row_adam)
    found = _saved(run)
    shared = sorted(key for key in expected if key.startswith("items/values["))
    assert len(shared) > table.max_rows
    harness.assert_close({k: found[k] for k in shared}, {k: expected[k] for k in shared}, 2e-6)


def test_changes_hold_what_rows_have_missed(tmp_path):
    """Adam by rows goes on from a whole checkpoint and changes as without an end."""
    table, config = models.growing(), LogicalDevices()
    runs = [
        _Interrupted(config, models.golden(table), _row_adam).run(folder, steps, increments=10)
        for folder, steps in ((tmp_path / "whole", models.STEPS), (tmp_path, models.STEPS - 2))
    ]
    whole, first = runs
    second = _Interrupted(config, models.golden(table), _row_adam)
    second.run(tmp_path, 2, first=first.newest, increments=10)
    np.testing.assert_allclose(second.losses, whole.losses[-2:], rtol=1e-6)


_SERVE = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
with tf.Session() as session:
    tf.saved_model.load(session, ["serve"], sys.argv[1])
    print(*session.run("rows:0", {"ids:0": [3, 1000]}).ravel())
assert "model_deploy" not in sys.modules
"""


@pytest.mark.slow
def test_an_exported_table_serves_without_this_library(tmp_path):
    """TensorFlow alone loads a SavedModel with a table, and finds the rows."""
    run = _run(LogicalDevices(), models.growing(), tmp_path / "run", models.STEPS)
    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int64, [None], "ids")
        found = embeddings.look_up(models.growing(), ids, is_training=False)
        rows = tf.identity(found, "rows")
        restorer = Restorer({variable.op.name: variable for variable in tf.global_variables()})
        with tf.Session() as session:
            restorer.restore(session, run.path)
            tf.saved_model.simple_save(session, str(tmp_path / "model"), {"ids": ids}, {"r": rows})
    command = [sys.executable, "-c", _SERVE, str(tmp_path / "model")]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    served = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    values = models.by_id(run.values)
    expected = [*values["items/values[3]"], *values["items/shared"]]
    np.testing.assert_allclose([float(each) for each in served.stdout.split()], expected, rtol=1e-6)
