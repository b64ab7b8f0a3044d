"""A small program that trains in a cluster: a line fitted to data that follow from the step.

python -m tests.processes.training --mode=synchronous --train_dir=DIR [flags of the cluster]
"""

import dataclasses
import os
import sys
import time
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, training
from model_deploy import cluster as cluster_lib
from model_deploy.commands import option, run_command
from model_deploy.hooks import add_session_hook
from tests import modes
from tests.processes.moments import Refuse, StopAtEnd, StopInSave, Wait, WrongOp, lose_in_turn
from tests.processes.refusals import RepeatedNumber

STOP_MOMENTS = ("save", "end")
MODES = ("asynchronous", "synchronous", "rotated", "backup", "all_reduce")
RATE, MOMENTUM, NUM_WEIGHTS = 0.05, 0.9, 4
_PLACES = np.arange(1, NUM_WEIGHTS + 1, dtype=np.float64)


@dataclasses.dataclass(frozen=True)
class TrainingOptions(cluster_lib.ClusterOptions, training.LoopOptions):
    """The settings of a cluster and of the loop, and how it trains."""

    log_every_n_steps: int = option(1, "steps between lines", minimum=1)
    save_interval_steps: int | None = option(20, "steps between checkpoints", minimum=1)
    mode: str = option("asynchronous", "how replicas train together", choices=MODES)
    train_dir: str = option("", "folder for checkpoints")
    max_number_of_steps: int = option(60, "the target", minimum=1)
    learning_rate: float = option(RATE, "of momentum", above=0)
    hold_at: int = option(0, "step from which on steps wait for --gate; 0 for none", minimum=0)
    gate: str = option("", "file that lets steps go on")
    start_gate: str = option("", "file that the start of a session waits for")
    step_secs: float = option(0.0, "seconds before each step, while there is no --gate", minimum=0)
    stop_task: str = option("", "the task, such as `worker 0`, that stops itself once")
    stop_moment: str = option("end", "when it does", choices=STOP_MOMENTS)
    stop_mark: str = option("", "file that it makes then")
    refused_task: str = option("", "the task of which step 25 is refused once, with --stop_mark")
    lost_tasks: str = option("", "tasks, such as `worker 0, worker 1`, that lose a step")
    repeated_mark: str = option("", "file by which worker 0 has TensorFlow refuse its step 25")
    others_wait: bool = option(True, "whether the other workers begin that step later")
    wrong_task: str = option("", "the task of which an op of step 25 fails")


class Gate(tf.train.SessionRunHook):
    """Waits before each step but this process's first, from one on until there is a file.

    A worker that starts late thus makes, and shows, one step, however far the others are.
    """

    def __init__(self, step, path, step_secs=0.0):
        self._step, self._path, self._step_secs = step, Path(path), step_secs
        self._makes_first = True

    def due(self, step):
        """Waits, if it is time to; takes part in no step."""
        if self._step_secs and not self._path.exists():
            time.sleep(self._step_secs)
        if self._makes_first:
            self._makes_first = False
            return False
        while self._step and step >= self._step and not self._path.exists():
            time.sleep(0.02)
        return False


def undisturbed(steps, num_replicas):
    """Weights and bias after a run of synchronous replicas, in NumPy: float64 [5]."""
    values, speed = np.zeros(NUM_WEIGHTS + 1), np.zeros(NUM_WEIGHTS + 1)
    for step in range(steps):
        gradient = np.zeros_like(values)
        for replica in range(num_replicas):
            inputs = np.append(np.sin(_PLACES * (step + 1) + replica), 1.0)
            error = inputs @ values - np.cos(step + replica)
            gradient += 2 * error * inputs / num_replicas
        speed = MOMENTUM * speed + gradient
        values -= RATE * speed
    return values


def build(mode, config, learning_rate, deploys=deploy):
    """The model of one worker."""
    step = tf.train.get_or_create_global_step()

    def model_fn():
        weights = tf.get_variable("weights", [NUM_WEIGHTS], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        number = tf.cast(step.read_value(), tf.float64)
        inputs = tf.sin(tf.constant(_PLACES) * (number + 1) + config.replica_id)
        error = tf.reduce_sum(tf.cast(inputs, tf.float32) * weights) + bias
        error -= tf.cast(tf.cos(number + config.replica_id), tf.float32)
        tf.losses.add_loss(tf.square(error))

    replicas = config.num_replicas
    count = {"synchronous": replicas, "rotated": replicas, "backup": replicas - 1}.get(mode)
    optimizer = tf.train.MomentumOptimizer(learning_rate, MOMENTUM)
    return deploys(config, model_fn, optimizer=optimizer, replicas_to_aggregate=count)


def worker_of(options):
    """The cluster and deployment of a worker; None for a server, when it has served to the end."""
    cluster, note = cluster_lib.resolve(options, os.environ)
    print(note, flush=True)
    if cluster.job_name == "ps":
        training.serve(cluster, options.start_timeout)
        return None
    return cluster, DeploymentConfig(
        clone_on_cpu=True,
        replica_id=cluster.task_id,
        num_replicas=len(cluster.workers),
        num_ps_tasks=len(cluster.ps),
        all_reduce=options.mode == "all_reduce",
        rotate_steps=options.mode == "rotated",
        replicas_to_aggregate=len(cluster.workers) if options.mode == "rotated" else None,
    )


def main(options, build_model=build):
    """Runs this process's task of training a model to its end."""
    worker = worker_of(options)
    if worker is None:
        return
    cluster, config = worker
    with tf.device(config.optimizer_device()), tf.device(config.variables_device()):
        tf.train.get_or_create_global_step()
    if options.start_gate:
        add_session_hook(Wait(options.start_gate))
    training.train(
        build_model(options.mode, config, options.learning_rate),
        options.train_dir,
        max_steps=options.max_number_of_steps,
        hooks=[
            Gate(options.hold_at, options.gate, options.step_secs),
            *_stopping(options, cluster),
        ],
        start_timeout=options.start_timeout,
        cluster=cluster,
        **options.part(training.LoopOptions),
    )


def _stopping(options, cluster):
    """Sees to it that this process stops itself, or that a step of it fails; its hooks."""
    task = f"{cluster.job_name} {cluster.task_id}"
    failing = {
        options.refused_task: lambda: Refuse(25, options.stop_mark),
        options.wrong_task: lambda: WrongOp(25),
    }
    if task in failing:
        return [failing[task]()]
    if task in (losers := options.lost_tasks.split(", ")):
        return [lose_in_turn(losers.index(task), options.stop_mark)]
    if options.repeated_mark:
        mark, is_own = options.repeated_mark, cluster.is_chief
        return [RepeatedNumber(25, mark, is_own=is_own, others_wait=options.others_wait)]
    if options.stop_task != task:
        return []
    if options.stop_moment == "save":
        step = options.save_interval_steps - len(cluster.workers)
        return [StopInSave(options.train_dir, step, options.stop_mark)]
    return [StopAtEnd(options.stop_mark)]


if __name__ == "__main__":
    modes.enter()
    tf.get_logger().setLevel("ERROR")
    cluster_lib.end_process(run_command(sys.argv, TrainingOptions, main, __doc__))
