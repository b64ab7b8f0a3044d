"""One task of this project's cluster: trains a round of steps each time it is told to."""

import functools
import importlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tensorflow as tf

import model_deploy
from benchmarks import ps_network
from benchmarks.child import Requests
from model_deploy import all_reduce
from model_deploy import cluster as cluster_lib

tf1 = tf.compat.v1


class Rounds(tf1.train.SessionRunHook):
    """Pauses the training after each `steps` steps of this worker, until it is told to go on."""

    def __init__(self, requests: Requests, steps: int) -> None:
        self._requests = requests
        self._steps = steps
        self._done = 0
        self._began: float | None = None

    def due(self, step: int) -> bool:
        """Asked before every step; the other workers' steps do not count."""
        del step
        self._done += 1
        return self._done % self._steps == 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        if self._began is None:  # the first steps are slower and not timed
            self._requests.ready()
        else:
            self._requests.answer({"seconds": time.perf_counter() - self._began})
        if not self._requests.wait():
            run_context.request_stop()
        self._began = time.perf_counter()


def serve_ps(
    requests: Requests,
    worker_hosts: Sequence[str],
    ps_hosts: Sequence[str],
    task_id: int,
    threads: int | None = None,
) -> None:
    """A parameter server."""
    start_task(worker_hosts, ps_hosts, "ps", task_id, threads=threads)
    requests.ready()
    requests.wait()  # until the other end closes: there is nothing to ask for


def serve_worker(
    requests: Requests,
    *,
    worker_hosts: Sequence[str],
    ps_hosts: Sequence[str],
    task_id: int,
    network: str,
    steps: int,
    train_dir: str,
    ps_strategy: str = "round_robin",
) -> None:
    """An asynchronous worker; trains `steps` steps per request, answers "seconds"."""
    cluster, server, session_config = start_task(worker_hosts, ps_hosts, "worker", task_id)
    deployment = model_deploy.DeploymentConfig(
        clone_on_cpu=True,
        replica_id=task_id,
        num_replicas=len(worker_hosts),
        num_ps_tasks=len(ps_hosts),
        ps_strategy=ps_strategy,
    )
    model_deploy.train(
        _deploy(deployment, network),
        train_dir,
        master=server.target,
        is_chief=cluster.is_chief,
        session_config=session_config,
        hooks=[Rounds(requests, steps)],
    )


def serve_clones(
    requests: Requests,
    *,
    worker_hosts: Sequence[str],
    ps_hosts: Sequence[str],
    network: str,
    clones: int,
    steps: int,
) -> None:
    """A worker of asynchronous clones, each of which makes `steps` steps per request."""
    _, server, session_config = start_task(worker_hosts, ps_hosts, "worker", 0)
    deployment = model_deploy.DeploymentConfig(
        num_clones=clones,
        clone_on_cpu=True,
        num_ps_tasks=len(ps_hosts),
        ps_strategy="balanced",
    )
    model = _deploy(deployment, network, asynchronous=True)
    session = tf1.Session(server.target, config=session_config)
    session.run(tf1.global_variables_initializer())
    session.run(tf1.tables_initializer())
    runs = [session.make_callable(each.train_op) for each in model.clone_updates]

    def make_steps(run: Callable[[], Any], number: int) -> None:
        for _ in range(number):
            cluster_lib.run_unless_refused(run)

    def measure() -> dict[str, float]:
        began = time.perf_counter()
        with ThreadPoolExecutor(clones) as threads:
            list(threads.map(make_steps, runs, [steps] * clones))
        return {"seconds": time.perf_counter() - began}

    for run in runs:  # the first steps are slower and not timed
        make_steps(run, 1)
    requests.serve(measure)


def _deploy(
    deployment: model_deploy.DeploymentConfig, network: str, *, asynchronous: bool = False
) -> model_deploy.DeployedModel:
    with tf1.device(deployment.variables_device()):
        step = tf1.train.get_or_create_global_step()
    with tf1.device(step.device):
        rate = tf1.train.exponential_decay(
            ps_network.LEARNING_RATE,
            step,
            ps_network.DECAY_STEPS,
            ps_network.DECAY,
            staircase=True,
        )
    return model_deploy.deploy(
        deployment,
        _model_fn(network),
        optimizer=tf1.train.GradientDescentOptimizer(rate),
        asynchronous=asynchronous,
    )


def _model_fn(network: str) -> Any:
    if network not in ps_network.MODEL_FNS:
        # Its imports are not for the other tasks to wait for.
        return importlib.import_module(f"benchmarks.{network}").model_fn
    return ps_network.MODEL_FNS[network]


def serve_copy(
    requests: Requests, worker_hosts: Sequence[str], ps_hosts: Sequence[str], steps: int
) -> None:
    """The limit: moves the model's bytes from the parameter server and back, without training.

    Assigning has to wait for the bytes, as an update has to.
    """
    cluster, server, session_config = start_task(worker_hosts, ps_hosts, "worker", 0)
    num_floats = [ps_network.MODEL_BYTES // ps_network.FLOAT_BYTES]
    with tf.device("/job:ps/task:0/device:CPU:0"):
        variable = tf1.get_variable("floats", num_floats, initializer=tf1.zeros_initializer())
    with tf.device(f"{cluster.own.device}/device:CPU:0"):
        # Not a plain copy, which TensorFlow would do without on the way back.
        local = variable.read_value() + 1.0
    with tf.device(variable.device):
        copy = variable.assign(local).op
    session = tf1.Session(server.target, config=session_config)
    session.run(variable.initializer)
    run = session.make_callable(copy)
    run_refused = functools.partial(cluster_lib.run_unless_refused, run)
    run_refused()

    def measure() -> dict[str, float]:
        began = time.perf_counter()
        for _ in range(steps):
            run_refused()
        return {"seconds": time.perf_counter() - began}

    requests.serve(measure)


def start_task(
    worker_hosts: Sequence[str],
    ps_hosts: Sequence[str],
    job_name: str,
    task_id: int,
    deployment: model_deploy.DeploymentConfig | None = None,
    *,
    threads: int | None = None,
) -> tuple[cluster_lib.Cluster, Any, Any]:
    """Starts a task's server; returns its cluster, server and the configuration of its sessions.

    With `threads` so many run ops, and none spins: hosts in namespaces share this machine.
    """
    tf1.disable_eager_execution()
    cluster = cluster_lib.Cluster(
        tuple(worker_hosts), tuple(ps_hosts), job_name=job_name, task_id=task_id
    )
    config = cluster_lib.session_config(cluster)
    if threads is not None:
        config.inter_op_parallelism_threads = threads
        config.experimental.disable_thread_spinning = True
    if deployment is not None and deployment.all_reduce:
        config = all_reduce.session_config(deployment, config)
    server = cluster_lib.start_server(cluster, config)
    return cluster, server, config
