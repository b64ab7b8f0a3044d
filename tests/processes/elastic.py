"""A worker of an elastic run: a line fitted to data that follow from step and batch.

python -m tests.processes.elastic --train_dir=DIR
"""

import dataclasses
import os
import sys
import time
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, elastic, training
from model_deploy.cluster import end_process
from model_deploy.commands import option, run_command
from model_deploy.hooks import add_session_hook
from model_deploy.optimization import LearningRateOptions, build_learning_rate
from model_deploy.processes import WORKER
from tests import modes
from tests.processes.moments import Refuse, Wait, die_in_update, lose_in_turn
from tests.processes.refusals import RepeatedNumber

# Before the values of the variables are exchanged, and before the first step.
MOMENTS = ("start", "step")
RATE, MOMENTUM, NUM_WEIGHTS = 0.05, 0.9, 4
_PLACES = np.arange(1, NUM_WEIGHTS + 1, dtype=np.float64)


@dataclasses.dataclass(frozen=True)
class ElasticOptions(training.LoopOptions):
    """The settings of the loop, and of the run."""

    log_every_n_steps: int = option(1, "steps between lines", minimum=1)
    train_dir: str = option("", "folder for checkpoints")
    max_steps: int = option(60, "the target", minimum=1)
    start_timeout: float = option(60.0, "seconds to wait for others", above=0)
    step_secs: float = option(0.1, "seconds between two steps", minimum=0)
    num_clones: int = option(1, "clones of each worker", minimum=1)
    worlds_per_process: int | None = option(None, "worlds of a worker's process", minimum=1)
    best_step: int = option(0, "step of the best evaluation, after each later one the rate halves")
    fast: str = option("", "file that lets one step follow the other at once")
    waits: str = option("", "when to wait once for --gate", choices=("", *MOMENTS))
    gate: str = option("", "file that ends that")
    fails: bool = option(False, "end with an error then")
    repeated_mark: str = option("", "file by which worker 0 has TensorFlow refuse its step 25")
    refuses: int = option(0, "step that is refused once, which makes --gate")
    losers: str = option("", "workers, such as `0, 1`, that lose a step")
    dies_in_update: int = option(0, "step in whose update the chief dies once, and makes --gate")


class Pause(tf.train.SessionRunHook):
    """Makes steps slow, and says when each has ended."""

    def __init__(self, secs, fast):
        self._secs, self._fast = secs, fast

    def after_run(self, run_context, run_values):
        print(f"made {run_context.report.step} at {time.time():.3f}", flush=True)
        if not Path(self._fast).is_file():
            time.sleep(self._secs)


def undisturbed(steps, shares, rates=()):
    """Weights, bias and state after a run of that many shares, in NumPy: float64 [6].

    Args:
      steps: number of steps.
      shares: number of shares.
      rates: the learning rates of the steps, where they change.
    """
    values, speed, state = np.zeros(NUM_WEIGHTS + 1), np.zeros(NUM_WEIGHTS + 1), 0.0
    for step, rate in enumerate(rates or [RATE] * steps):
        gradient, mean = np.zeros_like(values), 0.0
        for share in range(shares):
            inputs = np.append(np.sin(_PLACES * (step + 1) + share), 1.0)
            error = inputs @ values - np.cos(step + share)
            gradient += 2 * error * inputs / shares
            mean += error / shares
        state -= 0.1 * (state - mean)
        speed = MOMENTUM * speed + gradient
        values -= rate * speed
    return np.append(values, state)


def plateau(global_step):
    """A learning rate that halves after each evaluation that is no better."""
    options = LearningRateOptions(
        learning_rate=RATE,
        learning_rate_decay_type="plateau",
        learning_rate_decay_factor=0.5,
        plateau_patience=1,
    )
    return build_learning_rate(options, global_step, 1)


def build(config, hooks=(), start_hooks=(), *, is_plateau=False, **arguments):
    """The model of one worker in one world; `start_hooks` come before values are exchanged."""
    for hook in start_hooks:
        add_session_hook(hook)
    step = tf.train.get_or_create_global_step()
    shares = iter(range(config.first_part * config.num_clones, config.global_clones))

    def model_fn():
        share = next(shares)
        zeros = tf.zeros_initializer()
        weights = tf.get_variable("weights", [NUM_WEIGHTS], initializer=zeros)
        bias = tf.get_variable("bias", [], initializer=zeros)
        state = tf.get_variable("state", [], initializer=zeros, trainable=False)
        number = tf.cast(step.read_value(), tf.float64)
        inputs = tf.sin(tf.constant(_PLACES) * (number + 1) + share)
        error = tf.reduce_sum(tf.cast(inputs, tf.float32) * weights) + bias
        error -= tf.cast(tf.cos(number + share), tf.float32)
        tf.losses.add_loss(tf.square(error))
        tf.add_to_collection(
            tf.GraphKeys.UPDATE_OPS, state.assign_sub(0.1 * (state - error), read_value=False)
        )

    rate = plateau(step) if is_plateau else RATE
    optimizer = tf.train.MomentumOptimizer(rate, MOMENTUM)
    model = deploy(config, model_fn, optimizer=optimizer, **arguments)
    return elastic.ElasticModel(model, {"hooks": hooks, "learning_rate": rate})


def main(options):
    """Trains to the end."""
    wait = {options.waits: [Wait(options.gate, options.fails)]}
    hooks = [Pause(options.step_secs, options.fast), *wait.get("step", [])]
    if options.repeated_mark:
        is_own = os.environ[WORKER] == "0"
        hooks.append(RepeatedNumber(25, options.repeated_mark, is_own=is_own, others_wait=False))
    if options.refuses:
        hooks.append(Refuse(options.refuses, options.gate))

    def build_for(config):
        losers, own = options.losers.split(", "), os.environ[WORKER]
        lost = [lose_in_turn(losers.index(own), options.gate)] if own in losers else []

        def die():
            with tf.device(config.optimizer_device()):
                return die_in_update(options.dies_in_update, options.gate)

        update_ops = [die] if options.dies_in_update else []
        more = {"update_ops": update_ops, "is_plateau": options.best_step > 0}
        return build(config, [*hooks, *lost], wait.get("start", []), **more)

    def evaluate(checkpoint):
        return {"accuracy": -abs(int(checkpoint.rpartition("-")[2]) - options.best_step)}

    result = elastic.train_elastic(
        build_for,
        DeploymentConfig(clone_on_cpu=True, num_clones=options.num_clones),
        options.train_dir,
        max_steps=options.max_steps,
        start_timeout=options.start_timeout,
        worlds_per_process=options.worlds_per_process,
        evaluate=evaluate,
        **options.part(training.LoopOptions),
    )
    print(f"ended at step {result.global_step}", flush=True)


if __name__ == "__main__":
    modes.enter()
    tf.get_logger().setLevel("ERROR")
    end_process(run_command(sys.argv, ElasticOptions, main, __doc__))
