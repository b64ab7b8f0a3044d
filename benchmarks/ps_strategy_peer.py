"""TensorFlow's `ParameterServerStrategy` with `ClusterCoordinator`, task by task."""

import importlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from benchmarks import ps_network
from benchmarks.child import Requests


def serve_task(
    requests: Requests, cluster: Mapping[str, Sequence[str]], job_name: str, task_id: int
) -> None:
    """A worker or a parameter server; the coordinator uses it."""
    tf.distribute.Server(cluster, job_name=job_name, task_index=task_id, protocol="grpc")
    requests.ready()
    requests.wait()


def serve_coordinator(
    requests: Requests,
    cluster: Mapping[str, Sequence[str]],
    steps: int,
    steps_per_call: int = 1,
    network: str = "ps_network",
    **settings: Any,
) -> None:
    """Schedules `steps` steps on the workers per request; answers "seconds".

    The network is that of a module that has `batches`, and maybe a `StrategyNetwork`, which gets
    the settings.
    """
    module = importlib.import_module(f"benchmarks.{network}")
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster), rpc_layer="grpc"
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        built = getattr(module, "StrategyNetwork", _Network)(**settings)

    @tf.function
    def run_steps(iterator: Any) -> Any:
        for _ in tf.range(steps_per_call - 1):
            strategy.run(built.step, args=next(iterator))
        return strategy.run(built.step, args=next(iterator))

    data = coordinator.create_per_worker_dataset(tf.function(module.batches))
    iterator = iter(data)

    def measure(num_steps: int = steps) -> dict[str, float]:
        began = time.perf_counter()
        for _ in range(num_steps // steps_per_call):
            coordinator.schedule(run_steps, args=(iterator,))
        coordinator.join()
        return {"seconds": time.perf_counter() - began}

    measure(len(cluster["worker"]) * steps_per_call)
    requests.serve(measure)


class _Network:
    """784-500-10 with L2, updated by gradient descent with exponential decay."""

    def __init__(self) -> None:
        self._variables = [
            variable_of(tf.random.normal(shape, stddev=0.05 if len(shape) > 1 else 0.0))
            for shape in ps_network.SHAPES
        ]
        self._step = variable_of(tf.constant(0, tf.int64), trainable=False)

    def step(self, images: Any, labels: Any) -> Any:
        """One update; returns the loss."""
        # Read once: each use of a variable would fetch it again.
        weights = [tf.convert_to_tensor(variable) for variable in self._variables]
        with tf.GradientTape() as tape:
            tape.watch(weights)
            net = tf.nn.relu(
                tf.reshape(images, [-1, weights[0].shape[0]]) @ weights[0] + weights[1]
            )
            logits = net @ weights[2] + weights[3]
            entropies = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            decay = tf.nn.l2_loss(weights[0]) + tf.nn.l2_loss(weights[2])
            loss = tf.reduce_mean(entropies) + ps_network.WEIGHT_DECAY * decay
        epochs = tf.cast(self._step // ps_network.DECAY_STEPS, tf.float32)
        rate = ps_network.LEARNING_RATE * ps_network.DECAY**epochs
        gradients = tape.gradient(loss, weights)
        for variable, gradient in zip(self._variables, gradients, strict=True):
            variable.assign_sub(rate * gradient)
        self._step.assign_add(1)
        return loss


def variable_of(value: Any, trainable: bool = True) -> Any:
    # Steps of a worker's only replica may assign to it.
    first = tf.VariableAggregation.ONLY_FIRST_REPLICA
    return tf.Variable(value, trainable=trainable, aggregation=first)
