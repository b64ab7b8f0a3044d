"""DLRM: its clicks, its pairs, and how near its AUC comes to that of the known model."""

import pathlib
import re
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from examples import dlrm as script
from tests.processes.harness import Processes

ROOT = pathlib.Path(__file__).parents[2]
LINE = re.compile(
    r"test at step (\d+): auc ([\d.]+)  best possible auc ([\d.]+)  log_loss ([\d.]+) "
    r"\(([\d,]+) examples\)\n"
)


def run(folder, **settings):
    """Runs the program on the first columns of ids; returns its exit code."""
    flags = {"train_dir": folder, "num_tables": 4} | settings
    return script.main(["dlrm", *(f"--{name}={value}" for name, value in flags.items())])


@pytest.mark.one_mode
def test_clicks_are_those_of_the_known_model():
    """Each column's ids are less than its count, half of them 0; the mean label is the mean chance;
    a batch follows from its number.
    """
    clicks = script.KnownModel(3).batch(7, 20_000)
    assert clicks.ids.shape == (20_000, 26)
    assert (clicks.ids.min(0) == 0).all()
    assert (clicks.ids.max(0) < script.CARDINALITIES).all()
    large = np.array(script.CARDINALITIES) > 1000
    np.testing.assert_allclose((clicks.ids == 0).mean(0)[large], 0.5, atol=0.02)
    chances = 1 / (1 + np.exp(-clicks.scores))
    # Five standard deviations of a mean of 20,000 labels are at most 0.018.
    assert abs(clicks.labels.mean() - chances.mean()) < 0.018
    again, other = script.KnownModel(3).batch(7, 20_000), script.KnownModel(3).batch(8, 20_000)
    np.testing.assert_array_equal(again.scores, clicks.scores)
    assert not np.array_equal(other.scores, clicks.scores)


def test_interactions_are_the_products_of_different_vectors():
    """For three vectors of two examples they are the three products below the diagonal."""
    vectors = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    with tf.Session() as session:
        pairs = session.run(script.interactions(tf.constant(vectors)))
    expected = [[v[1] @ v[0], v[2] @ v[0], v[2] @ v[1]] for v in vectors]
    np.testing.assert_array_equal(pairs, expected)


@pytest.mark.slow
@pytest.mark.one_mode
def test_two_clones(tmp_path, capsys, monkeypatch):
    """A run ends with its checkpoint and its test; the test's clicks are those of no step."""
    monkeypatch.setattr(script, "TEST_BATCHES", 3)
    numbers = []
    known = script.KnownModel.batch

    def noted(self, number, size):
        numbers.append(int(number))
        return known(self, number, size)

    monkeypatch.setattr(script.KnownModel, "batch", noted)
    assert run(tmp_path, num_clones=2, num_tables=2, batch_size=100, max_steps=2) == 0
    step, *_, examples = LINE.search(capsys.readouterr().out).groups()
    assert (step, examples) == ("2", "300")
    assert (tmp_path / "model.ckpt-2.index").exists()
    in_order = [number for number in numbers if number >= 3]
    assert in_order[:4] == [3, 4, 5, 6]
    assert {number for number in numbers if number < 3} == {0, 1, 2}


@pytest.mark.slow
@pytest.mark.one_mode
def test_the_best_possible_auc_is_reached(tmp_path, capsys):
    """With the first 4 columns 600 steps come within 0.005 of it."""
    assert run(tmp_path, max_steps=600) == 0
    _, reached, best, *_ = LINE.search(capsys.readouterr().out).groups()
    assert float(reached) > float(best) - 0.005
    assert float(best) > 0.65


@pytest.mark.slow
@pytest.mark.one_mode
def test_by_one_flag_on_parameter_servers(tmp_path):
    """A worker and two servers train, and the worker tests their shards in one process."""
    program = [sys.executable, str(ROOT / "examples" / "dlrm.py"), f"--train_dir={tmp_path}"]
    program += ["--num_ps=2", "--num_workers=1"]
    program += ["--num_tables=2", "--batch_size=64", "--max_steps=20"]
    with Processes(tmp_path) as processes:
        process = processes.start("program", program)
        assert process.wait() == 0, process.log
        assert processes.living() == []
    assert LINE.search(process.log)[1] == "20"
    names = {name for name, _ in tf.train.list_variables(str(tmp_path / "model.ckpt-20"))}
    assert {"table_0/shard_0/values", "table_0/shard_1/values"} <= names
