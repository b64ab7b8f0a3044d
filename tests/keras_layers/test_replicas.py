"""Keras models on several replicas: with parameter servers, and by all-reduce."""

import concurrent.futures
import functools
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.all_reduce import session_config
from model_deploy.hooks import session_hooks
from tests.clusters import start_cluster, start_workers
from tests.goldens import LogicalDevices, cpu_config
from tests.keras_layers.models import BATCH_LAW_MODELS, MODELS, STEPS, Run, assert_same

NAMES = [name for name in BATCH_LAW_MODELS if name.startswith("mlp")]


@functools.cache
def _one(name):
    """The model after training on one clone."""
    return Run(MODELS[name])()


@pytest.fixture(scope="module")
def cluster():
    """Targets of two workers with two parameter servers."""
    return start_cluster(num_workers=2, num_ps=2)


def _train(targets, name, **options):
    """Trains two replicas on two parameter servers to the end; returns the values."""
    for target in targets:
        tf.Session.reset(target)  # servers keep variables of earlier sessions
    runs = [
        Run(MODELS[name], 2, replica_id=i, num_replicas=2, num_ps_tasks=2, **options)
        for i in range(2)
    ]
    all_done = threading.Barrier(2, timeout=60)

    def run(index):
        each, session = runs[index], sessions[index]
        with each.graph.as_default():
            for hook in session_hooks():
                hook.after_create_session(session, tf.train.Coordinator())
        for _ in range(STEPS):
            session.run(each.model.train_op)
        all_done.wait()  # then nobody changes the values any more
        each.values = session.run(each.variables)

    sessions = []
    for i, (each, target) in enumerate(zip(runs, targets, strict=True)):
        filters = ["/job:ps", f"/job:worker/task:{i}"]
        with each.graph.as_default():
            initialize = tf.global_variables_initializer(), tf.local_variables_initializer()
        sessions.append(
            tf.Session(target, graph=each.graph, config=tf.ConfigProto(device_filters=filters))
        )
        if i == 0:
            sessions[0].run(initialize[0])
        sessions[i].run(initialize[1])
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(run, range(2)))
    for session in sessions:
        session.close()
    return runs


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("copy", [False, True])
def test_synchronous_replicas_train_as_one_does(cluster, name, copy):
    """Two replicas of two clones end where one clone on the whole batch ends."""
    expected = _one(name).values
    for run in _train(cluster, name, replicas_to_aggregate=2, copy_clones=copy):
        for variable, value in expected.items():
            limit = 1e-6 * max(np.max(np.abs(value)), 0.1)
            np.testing.assert_allclose(
                run.values[variable], value, rtol=0, atol=limit, err_msg=variable
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["dropping keras inside", "dropping tf_keras before", "residual keras before"]
)
def test_asynchronous_replicas_train(cluster, name):
    """Each replica makes its updates; batch-norm averages on parameter servers move."""
    runs = _train(cluster, name)
    assert runs[0].values["global_step"] == 2 * STEPS
    moved = [value for key, value in runs[0].values.items() if key.endswith("moving_variance")]
    assert moved
    assert all(np.all(np.isfinite(value)) and np.all(value != 1) for value in moved)
    assert all("/job:ps" in v.device for v in runs[0].variables.values())


@pytest.fixture(scope="module")
def workers():
    """Targets of two workers, each with two devices."""
    config = LogicalDevices(num_clones=2, num_replicas=2, all_reduce=True)
    return start_workers(2, session_config(config, cpu_config(2)))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_replicas_by_all_reduce_train_as_one_does(workers, name):
    """Two replicas of two clones, each with its own variables, end where one clone ends."""
    runs = [Run(MODELS[name], 2, replica_id=i, num_replicas=2, all_reduce=True) for i in range(2)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda run, target: run(target), runs, workers))
    for run in runs:
        assert_same(run, _one(name))
