"""Copied Keras models give the bits of called ones, and runs that go on those of whole runs.

That any division of a batch trains them as one clone does is in `tests/laws.py`.
"""

import numpy as np
import pytest

from tests import clusters, harness, laws
from tests.goldens import LogicalDevices
from tests.keras_layers.models import MODELS

# Form, library and where the model is made, each with each.
_PARTS = [sorted(set(column)) for column in zip(*(name.split() for name in MODELS), strict=True)]
# The quick witnesses; the others are slow.
_QUICK = ("mlp keras inside", "dropping keras inside")


def _cases(*more, is_allowed=lambda *cell: True):
    """The name of a model, one of each of `more` and a kind of variables: every two meet."""

    def is_there(*cell):
        return " ".join(cell[:3]) in MODELS and is_allowed(*cell)

    factors = [*_PARTS, *more, laws.KINDS]
    found = [(" ".join(cell[:3]), *cell[3:]) for cell in laws.covering(factors, is_there)]
    found += [
        (name, *(values[0] for values in more), kind)
        for name, kind in zip(_QUICK, laws.KINDS, strict=True)
    ]
    return [
        pytest.param(*cell, marks=() if cell[0] in _QUICK else pytest.mark.slow)
        for cell in dict.fromkeys(found)
    ]


@pytest.mark.parametrize(
    ("name", "steps", "by_step", "variable_kind"),
    _cases([1, 2], [False, True]),
    indirect=["variable_kind"],
)
@pytest.mark.usefixtures("variable_kind")
def test_copies_train_as_calls_do(name, steps, by_step):
    """Copied clones give what called ones give, dropout of Keras 3 included."""
    called, copied = (
        harness.Replica(
            LogicalDevices(num_clones=2, accumulate_steps=steps, copy_clones=copy),
            MODELS[name],
            harness.adam,
            by_step=by_step,
        )()
        for copy in (False, True)
    )
    if "dropping tf_keras" in name:  # has random ops with seeds in attributes
        assert copied.values.keys() == called.values.keys()
        return
    harness.assert_equal(copied, called)


_OPTIONS = {"plain": {}, "parts": {"accumulate_steps": 2}, "all-reduce": {"all_reduce": True}}


def _draws_again(*cell):
    """Whether a run that goes on draws the numbers of one that was not stopped."""
    form, library, _made, _options, by_step, _kind = cell
    # TensorFlow's random ops count in the process.
    return (form, library) != ("dropping", "tf_keras") or by_step


@pytest.mark.parametrize(
    ("name", "options", "by_step", "variable_kind"),
    _cases([*_OPTIONS], [False, True], is_allowed=_draws_again),
    indirect=["variable_kind"],
)
@pytest.mark.usefixtures("variable_kind")
def test_a_run_that_goes_on_ends_as_one_that_was_not_stopped(name, options, by_step, tmp_path):
    """Steps before and after a checkpoint are those without one, to the last bit."""
    config, path = LogicalDevices(num_clones=2, **_OPTIONS[options]), str(tmp_path / "run")
    whole, last = (
        harness.Replica(config, MODELS[name], harness.adam, by_step=by_step) for _ in range(2)
    )
    with whole.open() as session:
        whole.start()
        for _ in range(2):
            whole.step()
        whole.saver.save(session, path, write_meta_graph=False)
        for _ in range(2):
            whole.step()
        whole.finish()
    last(steps=2, restore=path)
    whole.losses = whole.losses[2:]
    harness.assert_equal(last, whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variable_kind"),
    [
        ("dropping keras inside", "resource"),
        ("dropping tf_keras before", "reference"),
        ("residual keras before", "reference"),
        ("residual tf_keras inside", "resource"),
    ],
    indirect=["variable_kind"],
)
@pytest.mark.usefixtures("variable_kind")
def test_asynchronous_replicas_train(name):
    """Each replica makes its updates; batch-norm averages on parameter servers move."""
    config = LogicalDevices(num_clones=2, num_replicas=2, num_ps_tasks=2)
    targets = clusters.workers(2)
    run, _ = harness.train_together(harness.replicas_of(config, MODELS[name]), targets)
    assert run.values["global_step"] == 2 * harness.STEPS
    moved = [value for key, value in run.values.items() if key.endswith("moving_variance")]
    assert moved
    assert all(np.all(np.isfinite(value)) and np.all(value != 1) for value in moved)
    assert all("/job:ps" in v.device for v in run.variables.values())
