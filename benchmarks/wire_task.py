"""One task of a cluster that trains a model of a given size, by each way and wire precision."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

import model_deploy
from benchmarks.child import Requests
from benchmarks.layers import Computation
from benchmarks.ps_task import start_task

tf1 = tf.compat.v1
FLOAT_BYTES = 4
NUM_LAYERS = 10


class Orders(tf1.train.SessionRunHook):
    """Pauses the training after the first step, and after each round of as many as it is told.

    An order is a line of JSON with "steps", and "computation_secs" of each.
    """

    def __init__(self, requests: Requests, computation: Computation) -> None:
        self._requests = requests
        self._computation = computation
        self._left = 1
        self._began: float | None = None

    def due(self, step: int) -> bool:
        """Asked before every step; the other workers' steps do not count."""
        del step
        self._left -= 1
        return self._left == 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        if self._began is None:  # the first step is slower and not timed
            self._requests.ready()
        else:
            self._requests.answer({"seconds": time.perf_counter() - self._began})
        if not self._requests.wait():
            run_context.request_stop()
            return
        order = json.loads(self._requests.words)
        self._left = order["steps"]
        self._computation.secs = order["computation_secs"]
        self._began = time.perf_counter()


def serve_worker(
    requests: Requests,
    *,
    worker_hosts: Sequence[str],
    ps_hosts: Sequence[str],
    task_id: int,
    way: str,
    wire_precision: str,
    megabytes: float,
    train_dir: str,
    threads: int,
    layers: int = NUM_LAYERS,
    num_clones: int = 1,
    partitioned: bool = False,
    asked: Mapping[str, Any] | None = None,
) -> None:
    """A worker; trains a round of steps per order, answers "seconds".

    Args:
      requests: the child's end.
      worker_hosts: addresses.
      ps_hosts: addresses; none for all-reduce.
      task_id: of this worker.
      way: `asynchronous`, `synchronous`, `all_reduce`, or `rotated`: the last, or with parameter
        servers the second, with `rotate_steps`.
      wire_precision: that of the deployment.
      megabytes: of float32 gradients, in equal variables, one of each layer.
      train_dir: of the run.
      threads: for ops.
      layers: of the network.
      num_clones: of this worker.
      partitioned: whether each variable is cut into a part for each parameter server.
      asked: further settings of the deployment.
    """
    together = bool(ps_hosts) and way in ("synchronous", "rotated")
    config = model_deploy.DeploymentConfig(
        num_clones=num_clones,
        clone_on_cpu=True,
        replica_id=task_id,
        num_replicas=len(worker_hosts),
        num_ps_tasks=len(ps_hosts),
        all_reduce=not ps_hosts,
        replicas_to_aggregate=len(worker_hosts) if together else None,
        rotate_steps=way == "rotated",
        wire_precision=wire_precision,
        **(asked or {}),
    )
    cluster, server, session_config = start_task(
        worker_hosts, ps_hosts, "worker", task_id, config, threads=threads
    )
    num_floats = round(megabytes * 1e6 / FLOAT_BYTES / layers)
    computation = Computation(layers)

    partitioner = config.partitioner() if partitioned else None

    def model_fn() -> None:
        with tf1.variable_scope("layers", partitioner=partitioner):
            values = [
                tf1.get_variable(f"floats_{i}", [num_floats], initializer=tf1.ones_initializer())
                for i in range(layers)
            ]
        tf1.losses.add_loss(computation.chain([tf.convert_to_tensor(value) for value in values]))

    model = model_deploy.deploy(
        config,
        model_fn,
        optimizer=tf1.train.GradientDescentOptimizer(0.001),
    )
    model_deploy.train(
        model,
        train_dir,
        master=server.target,
        is_chief=cluster.is_chief,
        session_config=session_config,
        hooks=[Orders(requests, computation)],
    )
