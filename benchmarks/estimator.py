"""Estimator: by itself, in a plain session, and by the ways of a deployment.

    python -m benchmarks.estimator [--rounds=5] [--quick]

In one process: the same `model_fn` by Estimator and in a `MonitoredTrainingSession`.  On two
workers and a parameter server: Estimator by itself, and as a deployment of asynchronous replicas;
the steps are global ones.  Each contender is started anew in each round, and steps are timed from
the first quarter on.  Links that are limited need root and `ip`, as `benchmarks.slow_network`.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from benchmarks import namespaces
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.namespaces import Host
from model_deploy import DeploymentConfig, estimator
from model_deploy.launch import ReservedPorts

UNIT = "global steps/s"
ALONE, SESSION, OURS = "Estimator", "MonitoredTrainingSession", "Estimator, deployed"
SHORT = "Estimator, deployed, 16 bits between"
NETWORK, COLUMNS = "network", "columns"
MEGABITS = 400
# Of a cluster; one process is the first of them.
_TASKS = (("worker", 0), ("worker", 1), ("ps", 0))
_BATCH, _INPUTS, _HIDDEN = 100, 784, 500
# Columns of the wide and deep model: as many as the click data of Criteo has.
_NUM_CATEGORIES, _NUM_NUMBERS, _BUCKETS, _DIMENSION = 26, 13, 1000, 16
# Seconds between checkpoints.  By steps the saver of TensorFlow asks for the step once more each.
_SAVE_SECS = 3600


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """In one process, and on a cluster."""
    steps = settings.amount(2000, quick=400)
    yield Benchmark(
        title="Estimator in one process",
        does="The 784-500-10 network, batches of 100, without checkpoints between.",
        quantities=(UNIT,),
        reference=SESSION,
        start=lambda _: _measures((SESSION, ALONE, OURS), NETWORK, steps, [None]),
        goals=(Goal(UNIT, ALONE, SESSION, 0.95),),
    )
    for program, does in _ON_CLUSTERS.items():
        yield Benchmark(
            title=f"Estimator on 2 workers and a parameter server: {program}",
            does=f"{does}, asynchronous, in real processes on the loopback.",
            quantities=(UNIT,),
            reference=ALONE,
            start=functools.partial(_on_loopback, program, steps),
            goals=(Goal(UNIT, OURS, ALONE, 1.5),),
        )
    yield Benchmark(
        title=f"Estimator on 2 workers and a parameter server: links of {MEGABITS} Mbit/s",
        does="The 784-500-10 network, asynchronous, each process behind a link of its own.",
        quantities=(UNIT,),
        reference=ALONE,
        start=functools.partial(_on_slow_links, settings.amount(400, quick=40)),
        goals=(Goal(UNIT, SHORT, ALONE, 1.5),),
    )


_ON_CLUSTERS = {
    NETWORK: "The 784-500-10 network, batches of 100",
    COLUMNS: (
        f"DNNLinearCombinedClassifier with {_NUM_CATEGORIES} columns of {_BUCKETS} categories, "
        f"linear and embedded in {_DIMENSION} numbers, and {_NUM_NUMBERS} numeric ones, "
        "layers of 256, 128 and 64 units, batches of 100"
    ),
}


def _on_loopback(program: str, steps: int, _: contextlib.ExitStack) -> Mapping[str, Measure]:
    return _measures((ALONE, OURS), program, steps, [None] * len(_TASKS))


def _on_slow_links(steps: int, stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    names = (ALONE, OURS, SHORT)
    reason = namespaces.missing()
    if reason is not None:
        return dict.fromkeys(names, Absent(reason))
    hosts = stack.enter_context(namespaces.slow_network(len(_TASKS), MEGABITS))
    return _measures(names, NETWORK, steps, hosts)


def _measures(
    names: Iterable[str], program: str, steps: int, hosts: Sequence[Host | None]
) -> dict[str, Measure | Absent]:
    return {name: functools.partial(_measure, name, program, steps, hosts) for name in names}


def _measure(name: str, program: str, steps: int, hosts: Sequence[Host | None]) -> dict[str, float]:
    """Runs a task on each host to its end; the chief says how fast the steps were.

    A host that is None is this machine.
    """
    tasks = _TASKS[: len(hosts)]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        ports = stack.enter_context(ReservedPorts(len(tasks))).addresses
        cluster: dict[str, list[str]] = {}
        for (job, _), host, port in zip(tasks, hosts, ports, strict=True):
            address = port if host is None else f"{host.address}:{port.rpartition(':')[2]}"
            cluster.setdefault(job, []).append(address)
        processes = []
        for (job, task), host in zip(tasks, hosts, strict=True):
            command = [*(host.within if host else ()), sys.executable, "-m", "benchmarks.estimator"]
            environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
            if len(tasks) > 1:
                place = {"cluster": cluster, "task": {"type": job, "index": task}}
                environment["TF_CONFIG"] = json.dumps(place)
            errors = stack.enter_context(tempfile.TemporaryFile("w+"))
            process = subprocess.Popen(
                [*command, "--task", name, program, str(steps), folder],
                env=environment,
                stderr=errors,
            )
            stack.callback(process.kill)
            processes.append((process, errors))
        for process, errors in processes:
            if process.wait(timeout=600):
                errors.seek(0)
                raise RuntimeError(
                    f"{name} failed with exit status {process.returncode}:\n{errors.read()[-2000:]}"
                )
        return {UNIT: float((Path(folder) / "rate").read_text())}


class _Rate(tf.train.SessionRunHook):
    """Writes the rate of global steps after the first quarter."""

    def __init__(self, steps: int, folder: str) -> None:
        self._first, self._file = steps // 4, Path(folder) / "rate"
        self._start: tuple[int, float] | None = None

    def begin(self) -> None:
        """Takes the step of the graph, an integer scalar."""
        self._step = tf.train.get_global_step()

    def before_run(self, _: Any) -> Any:
        """Asks for the step."""
        return tf.train.SessionRunArgs(self._step)

    def after_run(self, _: Any, values: Any) -> None:
        """Notes when a quarter is done, and the rate since."""
        now = time.perf_counter()
        if self._start is None and values.results >= self._first:
            self._start = values.results, now
        elif self._start is not None:
            step, start = self._start
            self._rate = (values.results - step) / (now - start)

    def end(self, session: Any) -> None:
        """Writes the rate."""
        del session
        self._file.write_text(str(self._rate))


def _input_fn() -> Any:
    random = np.random.RandomState(0)
    images = random.rand(1000, _INPUTS).astype(np.float32)
    labels = random.randint(0, 10, 1000)
    return tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(_BATCH).prefetch(2)


def _model_fn(features: Any, labels: Any, mode: str) -> Any:
    """The spec of the network: images float32 [100, 784], labels int64 [100]."""

    def layer(name: str, x: Any, units: int) -> Any:
        with tf.variable_scope(name):
            weights = tf.get_variable("weights", [x.shape[1], units])
            return tf.matmul(x, weights) + tf.get_variable("biases", [units])

    logits = layer("last", tf.nn.relu(layer("hidden", features, _HIDDEN)), 10)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _columns_input_fn() -> Any:
    random = np.random.RandomState(0)
    features = {
        f"category_{i}": random.randint(0, _BUCKETS, 1000) for i in range(_NUM_CATEGORIES)
    } | {f"number_{i}": random.rand(1000).astype(np.float32) for i in range(_NUM_NUMBERS)}
    data = tf.data.Dataset.from_tensor_slices((features, random.randint(0, 2, 1000)))
    return data.repeat().batch(_BATCH).prefetch(2)


def _model_with_columns(folder: str, config: Any) -> Any:
    """The wide and deep model."""
    columns = tf.feature_column
    categories = [
        columns.categorical_column_with_identity(f"category_{i}", _BUCKETS)
        for i in range(_NUM_CATEGORIES)
    ]
    numbers = [columns.numeric_column(f"number_{i}") for i in range(_NUM_NUMBERS)]
    embedded = [columns.embedding_column(each, _DIMENSION) for each in categories]
    return estimator.DNNLinearCombinedClassifier(
        folder,
        linear_feature_columns=categories,
        linear_optimizer="Ftrl",
        dnn_feature_columns=[*embedded, *numbers],
        dnn_optimizer="Adagrad",
        dnn_hidden_units=[256, 128, 64],
        config=config,
    )


def _train_in_session(hooks: list[Any], steps: int, folder: str) -> None:
    with tf.Graph().as_default():
        tf.train.create_global_step()
        iterator = tf.data.make_one_shot_iterator(_input_fn())
        spec = _model_fn(*iterator.get_next(), mode="train")
        hooks += [tf.train.StopAtStepHook(last_step=steps)]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder,
            hooks=hooks,
            save_checkpoint_secs=_SAVE_SECS,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                session.run([spec.train_op, spec.loss])


def run_task(name: str, program: str, steps: int, folder: str) -> None:
    """One process of a contender.

    Args:
      name: the contender.
      program: what it trains.
      steps: number of the last step.
      folder: of the run, and of the file `rate`, which the chief writes.
    """
    tf.disable_eager_execution()
    deployment = None
    if name == OURS:
        deployment = DeploymentConfig(clone_on_cpu=True)
    elif name == SHORT:
        deployment = DeploymentConfig(
            clone_on_cpu=True, num_replicas=2, num_ps_tasks=1, wire_precision="bfloat16"
        )
    config = estimator.RunConfig(
        train_distribute=deployment,
        save_checkpoints_secs=_SAVE_SECS,
        save_summary_steps=10 * steps,
        log_step_count_steps=None,
        experimental_max_worker_delay_secs=0,
    )
    hooks = [_Rate(steps, folder)] if config.is_chief else []
    if name == SESSION:
        _train_in_session(hooks, steps, folder)
        return
    if program == COLUMNS:
        input_fn, model = _columns_input_fn, _model_with_columns(folder, config)
    else:
        input_fn, model = _input_fn, estimator.Estimator(_model_fn, folder, config)
    if not config.cluster_spec:
        model.train(input_fn, hooks=hooks, max_steps=steps)
        return
    train_spec = estimator.TrainSpec(input_fn, max_steps=steps, hooks=hooks)
    eval_spec = estimator.EvalSpec(input_fn, steps=1)
    estimator.train_and_evaluate(model, train_spec, eval_spec)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        run_task(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    else:
        run_command(benchmarks, __doc__ or "")
