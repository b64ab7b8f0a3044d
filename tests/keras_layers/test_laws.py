"""The laws of deployment hold for Keras models, whichever way and wherever they are made."""

import functools

import pytest

from tests.keras_layers.models import BATCH_LAW_MODELS, MODELS, Run, assert_equal, assert_same

# The quick witnesses; the rest of each table is slow.
_QUICK = ("mlp keras inside", "mlp tf_keras before", "dropping keras inside")
_OPTIONS = [
    {},
    pytest.param({"accumulate_steps": 2}, marks=pytest.mark.slow),
    pytest.param({"all_reduce": True}, marks=pytest.mark.slow),
]


def _cases(models):
    return [pytest.param(name, marks=() if name in _QUICK else pytest.mark.slow) for name in models]


@functools.cache
def _one(name):
    """The model after training on one clone."""
    return Run(MODELS[name])()


@pytest.mark.parametrize("name", _cases(BATCH_LAW_MODELS))
@pytest.mark.parametrize(("num_clones", "steps"), [(1, 1), (4, 1), (1, 3), (2, 2)])
def test_clones_train_as_one_does(name, num_clones, steps):
    """n clones of k parts end where one clone on the whole batch ends."""
    assert_same(Run(MODELS[name], num_clones, accumulate_steps=steps)(), _one(name))


@pytest.mark.parametrize("name", _cases(BATCH_LAW_MODELS))
@pytest.mark.parametrize(("num_clones", "steps"), [(1, 1), (3, 1), (2, 2)])
def test_all_reduce_trains_as_one_does(name, num_clones, steps):
    """Clones with variables of their own end where one clone on the whole batch ends."""
    run = Run(MODELS[name], num_clones, accumulate_steps=steps, all_reduce=True)()
    assert_same(run, _one(name))


@pytest.mark.parametrize("name", _cases(MODELS))
@pytest.mark.parametrize(("num_clones", "steps"), [(2, 1), (2, 2)])
@pytest.mark.parametrize("by_step", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_copies_train_as_calls_do(name, num_clones, steps, by_step):
    """Copied clones give what called ones give, dropout of Keras 3 included."""
    options = {"accumulate_steps": steps, "by_step": by_step}
    called = Run(MODELS[name], num_clones, **options)
    copied = Run(MODELS[name], num_clones, copy_clones=True, **options)
    if "dropping tf_keras" in name:  # has random ops with seeds in attributes
        assert copied().values.keys() == called().values.keys()
        return
    assert_equal(copied(), called())


@pytest.mark.parametrize("name", _cases(MODELS))
@pytest.mark.parametrize("options", _OPTIONS)
@pytest.mark.parametrize("by_step", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_run_that_goes_on_ends_as_one_that_was_not_stopped(name, options, by_step, tmp_path):
    """Steps before and after a checkpoint are those without one, to the last bit."""
    if "dropping tf_keras" in name and not by_step:
        pytest.skip("TensorFlow's random ops count in the process")
    options = {**options, "by_step": by_step}
    whole = Run(MODELS[name], 2, **options)(steps=4)
    first = Run(MODELS[name], 2, **options)(steps=2, save=str(tmp_path / "run"))
    last = Run(MODELS[name], 2, **options)(steps=2, restore=str(tmp_path / "run"))
    assert first.losses + last.losses == whole.losses
    last.losses = whole.losses
    assert_equal(last, whole)
