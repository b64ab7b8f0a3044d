"""One task of a cluster that trains a model of a given size, by each way and wire precision."""

from collections.abc import Sequence

import tensorflow as tf

import model_deploy
from benchmarks.child import Requests
from benchmarks.ps_task import Rounds, start_task

tf1 = tf.compat.v1
FLOAT_BYTES = 4
NUM_VARIABLES = 10


def serve_worker(
    requests: Requests,
    *,
    worker_hosts: Sequence[str],
    ps_hosts: Sequence[str],
    task_id: int,
    way: str,
    wire_precision: str,
    megabytes: float,
    steps: int,
    train_dir: str,
) -> None:
    """A worker; trains `steps` steps per request, answers "seconds".

    Args:
      requests: the child's end.
      worker_hosts: addresses.
      ps_hosts: addresses; none for all-reduce.
      task_id: of this worker.
      way: `asynchronous`, `synchronous` or `all_reduce`.
      wire_precision: that of the deployment.
      megabytes: of float32 gradients, in `NUM_VARIABLES` equal variables.
      steps: per request.
      train_dir: of the run.
    """
    config = model_deploy.DeploymentConfig(
        clone_on_cpu=True,
        replica_id=task_id,
        num_replicas=len(worker_hosts),
        num_ps_tasks=len(ps_hosts),
        all_reduce=way == "all_reduce",
        wire_precision=wire_precision,
    )
    cluster, server, session_config = start_task(worker_hosts, ps_hosts, "worker", task_id, config)
    num_floats = round(megabytes * 1e6 / FLOAT_BYTES / NUM_VARIABLES)

    def model_fn() -> None:
        for i in range(NUM_VARIABLES):
            variable = tf1.get_variable(
                f"floats_{i}", [num_floats], initializer=tf1.ones_initializer()
            )
            tf1.losses.add_loss(tf.nn.l2_loss(variable))

    model = model_deploy.deploy(
        config,
        model_fn,
        optimizer=tf1.train.GradientDescentOptimizer(0.001),
        replicas_to_aggregate=len(worker_hosts) if way == "synchronous" else None,
    )
    model_deploy.train(
        model,
        train_dir,
        master=server.target,
        is_chief=cluster.is_chief,
        session_config=session_config,
        hooks=[Rounds(requests, steps)],
    )
