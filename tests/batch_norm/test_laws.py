"""n clones whose batch norms are synchronized train as one clone on the whole batch does."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tests.batch_norm.norms import MODELS, Run, adam, assert_same
from tests.copies import batches_of

OPTIMIZERS = {"sgd": lambda: tf.train.GradientDescentOptimizer(0.1), "adam": adam}


@functools.cache
def _one_clone(name, optimizer="adam"):
    return Run(MODELS[name], 1, make_optimizer=OPTIMIZERS[optimizer])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("num_clones", [2, 4])
@pytest.mark.parametrize("name", MODELS)
def test_called_clones_train_as_one(name, num_clones, optimizer):
    """Losses, variables, slots and moving averages are those of one clone."""
    run = Run(MODELS[name], num_clones, make_optimizer=OPTIMIZERS[optimizer])
    assert_same(run, _one_clone(name, optimizer))


@pytest.mark.parametrize("num_clones", [2, 4])
@pytest.mark.parametrize("name", MODELS)
def test_copied_clones_train_as_one(name, num_clones):
    """The same of clones that are copies of the first one."""
    golden = MODELS[name]
    run = Run(
        golden,
        num_clones,
        copy_clones=True,
        model_fn=lambda batches: golden.model_fn(*next(batches)),
        args=[batches_of(golden, num_clones)],
    )
    assert_same(run, _one_clone(name))


@pytest.mark.parametrize("name", MODELS)
def test_without_it_clones_train_otherwise(name):
    """The models tell the two apart."""
    run = Run(MODELS[name], 4, sync_batch_norm=False)
    with pytest.raises(AssertionError):
        assert_same(run, _one_clone(name), 1e-3)
