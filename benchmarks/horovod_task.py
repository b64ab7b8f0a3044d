"""One worker of a program of Horovod that trains a model of a given size."""

import json
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from benchmarks.child import Requests
from benchmarks.layers import Computation
from benchmarks.wire_task import FLOAT_BYTES, NUM_LAYERS, Orders
from model_deploy import horovod as hvd

tf1 = tf.compat.v1


class _OrdersOfEachStep(Orders):
    """The orders of a session that calls its hooks after every step."""

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if self.due(0):
            super().after_run(run_context, run_values)


def serve_worker(
    requests: Requests,
    *,
    worker_hosts: Sequence[str],
    task_id: int,
    megabytes: float,
    threads: int,
    passes: int = 1,
) -> None:
    """A worker; trains a round of steps per order, answers "seconds".

    Args:
      requests: the child's end.
      worker_hosts: addresses.
      task_id: of this worker.
      megabytes: of float32 gradients, in equal variables, one of each layer.
      threads: for ops.
      passes: for each update; a step of a round is one pass.
    """
    tf1.disable_eager_execution()
    place = {"cluster": {"worker": worker_hosts}, "task": {"type": "worker", "index": task_id}}
    os.environ["TF_CONFIG"] = json.dumps(place)
    hvd.init()
    num_floats = round(megabytes * 1e6 / FLOAT_BYTES / NUM_LAYERS)
    computation = Computation(NUM_LAYERS)
    values = [
        tf1.get_variable(f"floats_{i}", [num_floats], initializer=tf1.ones_initializer())
        for i in range(NUM_LAYERS)
    ]
    loss = computation.chain([tf.convert_to_tensor(value) for value in values])
    step = tf1.train.get_or_create_global_step()
    optimizer = hvd.DistributedOptimizer(
        tf1.train.GradientDescentOptimizer(0.001), backward_passes_per_step=passes
    )
    train_op = optimizer.minimize(loss, global_step=step)
    config = tf1.ConfigProto(inter_op_parallelism_threads=threads)
    hooks = [hvd.BroadcastGlobalVariablesHook(0), _OrdersOfEachStep(requests, computation)]
    with tf1.train.MonitoredTrainingSession(hooks=hooks, config=config) as session:
        while not session.should_stop():
            session.run(train_op)
