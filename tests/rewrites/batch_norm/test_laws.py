"""n clones whose batch norms are synchronized train as one clone on the whole batch does."""

import concurrent.futures
import dataclasses
import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.all_reduce import session_config
from tests.clusters import start_workers
from tests.goldens import LogicalDevices, cpu_config
from tests.rewrites.batch_norm.norms import MODELS, WITH_OWN_VARIABLES, Run, adam, assert_same

OPTIMIZERS = {"sgd": lambda: tf.train.GradientDescentOptimizer(0.1), "adam": adam}


@functools.cache
def _one_clone(name, optimizer="adam"):
    return Run(MODELS[name], 1, OPTIMIZERS[optimizer])()


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(("num_clones", "optimizer"), [(2, "sgd"), (4, "adam")])
@pytest.mark.parametrize("name", MODELS)
def test_called_clones_train_as_one(name, num_clones, optimizer):
    """Losses, variables, slots and moving averages are those of one clone."""
    assert_same(Run(MODELS[name], num_clones, OPTIMIZERS[optimizer])(), _one_clone(name, optimizer))


@pytest.mark.gpu
def test_two_clones_train_as_one():
    """Two clones on halves of the batch end where one clone on the whole batch ends."""
    assert_same(Run(MODELS["branches"], 2)(), _one_clone("branches"))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(("name", "num_clones"), [*((name, 2) for name in MODELS), ("slim", 4)])
def test_copied_clones_train_as_one(name, num_clones):
    """So do clones that are copies of the first one."""
    assert_same(Run(MODELS[name], num_clones, copy_clones=True)(), _one_clone(name))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num_clones"), [*((name, 2) for name in WITH_OWN_VARIABLES), ("branches", 4)]
)
def test_all_reduce_in_one_process(name, num_clones):
    """So do clones that have variables of their own, which stay equal."""
    assert_same(Run(MODELS[name], num_clones, all_reduce=True)(), _one_clone(name))


@pytest.fixture(scope="module")
def workers():
    """Targets of two workers, each with two devices."""
    config = LogicalDevices(num_clones=2, num_replicas=2, all_reduce=True)
    return start_workers(2, session_config(config, cpu_config(2)))


def _run_replicas(workers, golden, num_clones, **options):
    runs = [
        Run(golden, num_clones, num_replicas=2, replica_id=i, all_reduce=True, **options)
        for i in range(2)
    ]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return list(pool.map(lambda run, target: run(target), runs, workers))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(("name", "num_clones"), [("rank_2", 1), ("slim", 2), ("branches", 2)])
def test_replicas_train_as_one(workers, name, num_clones):
    """So do two replicas, with batch norms that are parallel to each other as well."""
    for run in _run_replicas(workers, MODELS[name], num_clones):
        assert_same(run, _one_clone(name))


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
@pytest.mark.parametrize("options", [{}, {"copy_clones": True}, {"all_reduce": True}], ids=str)
@pytest.mark.parametrize(("num_clones", "steps"), [(2, 3), (4, 2)])
def test_parts_of_the_same_index_are_a_batch(num_clones, steps, options):
    """Clones of k parts train as one clone of k parts does, each of which is that of all clones."""
    golden = MODELS["branches"]
    expected = Run(_regrouped(golden, num_clones, steps), 1, accumulate_steps=steps)()
    assert_same(Run(golden, num_clones, accumulate_steps=steps, **options)(), expected)


@pytest.mark.gpu
@pytest.mark.slow
def test_parts_of_replicas(workers):
    """Parts of the same index of all replicas are one batch, and no replica waits for ever."""
    golden = MODELS["branches"]
    expected = Run(_regrouped(golden, 4, 2), 1, accumulate_steps=2)()
    for run in _run_replicas(workers, golden, 2, accumulate_steps=2):
        assert_same(run, expected)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_without_it_clones_train_otherwise(name):
    """The models tell the two apart."""
    run = Run(MODELS[name], 4, sync_batch_norm=False)()
    with pytest.raises(AssertionError):
        assert_same(run, _one_clone(name), 1e-3)
