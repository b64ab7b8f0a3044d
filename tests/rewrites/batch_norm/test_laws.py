"""Parts of clones whose batch norms are synchronized train as one clone of such parts does.

That clones, copies and replicas train as one clone on the whole batch is in `tests/laws.py`.
"""

import dataclasses

import numpy as np
import pytest

from tests import harness
from tests.goldens import LogicalDevices
from tests.rewrites.batch_norm.norms import MODELS

TOLERANCES = {"tolerance": 1e-5, "losses": 1e-5}


def _config(num_clones, **options):
    return LogicalDevices(num_clones=num_clones, **{"sync_batch_norm": True, **options})


@pytest.mark.gpu
def test_two_clones_train_as_one():
    """Two clones on halves of the batch end where one clone on the whole batch ends."""
    golden = MODELS["branches"]
    run = harness.Replica(_config(2), golden, harness.adam)()
    harness.assert_same(run, harness.one_clone(golden, harness.adam), **TOLERANCES)


def _regrouped(golden, num_clones, steps):
    """The examples in the order in which parts of the same index are one behind the other."""

    def regroup(values):
        parts = np.split(values, num_clones * steps)
        return np.concatenate(
            [parts[i * steps + j] for j in range(steps) for i in range(num_clones)]
        )

    return dataclasses.replace(
        golden, features=regroup(golden.features), labels=regroup(golden.labels)
    )


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_clones", "steps", "options"),
    [
        pytest.param(2, 3, {}, marks=pytest.mark.one_mode),
        pytest.param(4, 2, {"copy_clones": True}, marks=pytest.mark.one_mode),
        pytest.param(2, 3, {"all_reduce": True}, marks=pytest.mark.one_mode),
        (2, 2, {"all_reduce": True, "num_replicas": 2}),
    ],
    ids=str,
)
def test_parts_of_the_same_index_are_a_batch(num_clones, steps, options):
    """They are one batch in all clones of all replicas, and no replica waits for ever."""
    golden, total = MODELS["branches"], num_clones * options.get("num_replicas", 1)
    regrouped = _regrouped(golden, total, steps)
    expected = harness.one_clone(regrouped, harness.adam, accumulate_steps=steps)
    config = _config(num_clones, accumulate_steps=steps, **options)
    if config.num_replicas > 1:
        runs = harness.train_replicas(config, golden, harness.adam)
    else:
        runs = [harness.Replica(config, golden, harness.adam)()]
    for run in runs:
        harness.assert_same(run, expected, **TOLERANCES)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize("name", MODELS)
def test_without_it_clones_train_otherwise(name):
    """The models tell the two apart."""
    run = harness.Replica(_config(2, sync_batch_norm=False), MODELS[name], harness.adam)()
    with pytest.raises(AssertionError):
        harness.assert_same(run, harness.one_clone(MODELS[name], harness.adam), 1e-3, 1e-3)
