"""Tables in checkpoints: gone on with to the last bit, on other parameter servers, with limits."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import embeddings
from model_deploy.checkpoints import CheckpointWriter, Restorer
from model_deploy.checkpoints.files import check_fits
from tests import harness
from tests.embeddings import models
from tests.goldens import LogicalDevices

pytestmark = pytest.mark.usefixtures("as_built")

_SERVERS = {"num_ps_tasks": 2}
_HALF = models.STEPS // 2


class _Run(harness.Replica):
    """A replica that saves and restores as `train` does."""

    def resume(self, folder, steps, target="", first=None):
        """Goes on from a checkpoint, or starts; saves at the end."""
        with self.graph.as_default():
            if first:
                check_fits(first)
            writer = CheckpointWriter(str(folder), 5, first=first)
            with self.open(target) as session:
                if first:
                    writer.saver_of(first).restore(session, first)
                self.start()
                for _ in range(steps):
                    self.step()
                self.finish()
                self.path = writer.save(session, self.steps[-1])
        return self


def _run(config, table, folder, steps, first=None):
    target = ""
    if config.num_ps_tasks:
        [target] = harness.parameter_servers(1)
        harness.reset([target])
    run = _Run(config, models.golden(table), harness.adam)
    return run.resume(folder, steps, target, first)


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(models.growing(), id="growing"),
        pytest.param(models.growing(max_rows=9, new_per_step=21), id="full"),
        pytest.param(models.growing(min_steps=2), id="rare"),
    ],
)
def test_resume_is_exact_to_the_last_bit(table, tmp_path):
    """A run that ends and goes on has the rows, slots and free rows of one that did not end."""
    whole = _run(LogicalDevices(), table, tmp_path / "whole", models.STEPS)
    first = _run(LogicalDevices(), table, tmp_path / "first", _HALF)
    second = _run(LogicalDevices(), table, tmp_path, models.STEPS - _HALF, first.path)
    second.losses = first.losses + second.losses
    harness.assert_equal(second, whole)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(_SERVERS, {}, id="to one process"),
        pytest.param({}, _SERVERS, id="to two servers"),
    ],
)
@pytest.mark.parametrize("min_steps", [1, 2])
def test_other_parameter_servers_have_the_same_rows(before, after, min_steps, tmp_path):
    """On another number of parameter servers a run ends with the rows of one that did not move."""
    table = models.growing(min_steps=min_steps)
    whole = _run(LogicalDevices(), table, tmp_path / "whole", models.STEPS)
    first = _run(LogicalDevices(**before), table, tmp_path / "first", _HALF)
    rest = models.STEPS - _HALF
    second = _run(LogicalDevices(**after), table, tmp_path, rest, first.path)
    harness.assert_close(models.by_id(second.values), models.by_id(whole.values))


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
