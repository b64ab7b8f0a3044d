"""Estimator: by itself, in a plain session, and by the ways of a deployment.

    python -m benchmarks.estimator [--rounds=5] [--quick]

In one process: the same `model_fn` by Estimator and in a `MonitoredTrainingSession`.  On two
workers and a parameter server: Estimator by itself, and as a deployment of asynchronous replicas;
the steps are global ones.  Each contender is started anew in each round, and steps are timed from
the first quarter on.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from benchmarks.frame import Benchmark, Goal, Measure, Settings, run_command
from model_deploy import DeploymentConfig, estimator
from model_deploy.launch import ReservedPorts

UNIT = "global steps/s"
ALONE, SESSION, OURS = "Estimator", "MonitoredTrainingSession", "Estimator, deployed"
_BATCH, _INPUTS, _HIDDEN = 100, 784, 500
# Seconds between checkpoints.  By steps the saver of TensorFlow asks for the step once more each.
_SAVE_SECS = 3600


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """In one process, and on a cluster."""
    steps = settings.amount(2000, quick=20)
    yield Benchmark(
        title="Estimator in one process",
        does="The 784-500-10 network, batches of 100, without checkpoints between.",
        quantities=(UNIT,),
        reference=SESSION,
        start=lambda _: _measures((SESSION, ALONE, OURS), steps, num_workers=1),
        goals=(Goal(UNIT, ALONE, SESSION, 0.95),),
    )
    yield Benchmark(
        title="Estimator on 2 workers and a parameter server",
        does="The same, asynchronous, in real processes on the loopback.",
        quantities=(UNIT,),
        reference=ALONE,
        start=lambda _: _measures((ALONE, OURS), steps, num_workers=2),
        goals=(Goal(UNIT, OURS, ALONE, 1.5),),
    )


def _measures(names: Iterable[str], steps: int, num_workers: int) -> Mapping[str, Measure]:
    return {name: functools.partial(_measure, name, steps, num_workers) for name in names}


def _measure(name: str, steps: int, num_workers: int) -> dict[str, float]:
    """Runs all tasks to their end; the chief says how fast the steps were."""
    tasks = [("worker", i) for i in range(num_workers)]
    tasks += [("ps", 0)] if num_workers > 1 else []
    with tempfile.TemporaryDirectory() as folder, ReservedPorts(len(tasks)) as ports:
        cluster: dict[str, list[str]] = {}
        for (job, _), address in zip(tasks, ports.addresses, strict=True):
            cluster.setdefault(job, []).append(address)
        with contextlib.ExitStack() as stack:
            processes = []
            for job, task in tasks:
                command = [sys.executable, "-m", "benchmarks.estimator", "--task"]
                command += [name, str(steps), folder]
                environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
                if num_workers > 1:
                    place = {"cluster": cluster, "task": {"type": job, "index": task}}
                    environment["TF_CONFIG"] = json.dumps(place)
                process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
                stack.callback(process.kill)
                processes.append(process)
            for process in processes:
                if process.wait(timeout=600):
                    raise RuntimeError(f"{name} failed with exit status {process.returncode}")
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


def run_task(name: str, steps: int, folder: str) -> None:
    """One process of a contender.

    Args:
      name: the contender.
      steps: number of the last step.
      folder: of the run, and of the file `rate`, which the chief writes.
    """
    tf.disable_eager_execution()
    deployment = DeploymentConfig(clone_on_cpu=True) if name == OURS else None
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
    model = estimator.Estimator(_model_fn, folder, config)
    if not config.cluster_spec:
        model.train(_input_fn, hooks=hooks, max_steps=steps)
        return
    train_spec = estimator.TrainSpec(_input_fn, max_steps=steps, hooks=hooks)
    eval_spec = estimator.EvalSpec(_input_fn, steps=1)
    estimator.train_and_evaluate(model, train_spec, eval_spec)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--task"]:
        run_task(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        run_command(benchmarks, __doc__ or "")
