"""Training loops of graph mode around a model, and how many steps per second they make."""

import contextlib
import io
import tempfile
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

import model_deploy
from benchmarks import networks
from benchmarks.child import Requests
from model_deploy import slim

tf1 = tf.compat.v1

# Builds in the default graph what a loop runs: a `DeployedModel`, or an op for the bare loops.
Build = Callable[[], Any]


class Clock(tf1.train.SessionRunHook):
    """Notes the times before the first and after the last timed step.

    Args:
      warm_up: steps that are not timed: the first ones are slower.
      steps: timed steps.

    Attributes:
      num_steps: how many are to be made: one more, as the last step of a run is none like the
        others: `train` fetches summaries in it.
    """

    def __init__(self, warm_up: int, steps: int) -> None:
        self.first = warm_up
        self.last = warm_up + steps
        self.num_steps = self.last + 1
        self.began = self.ended = 0.0

    @property
    def steps_per_sec(self) -> float:
        """Over the timed steps."""
        return (self.last - self.first) / (self.ended - self.began)

    def due(self, step: int) -> bool:
        """Only where a time is noted."""
        return step in (self.first, self.last)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.note(run_context.report.step)

    def note(self, step: int) -> None:
        """Notes the time after a step."""
        if step == self.first:
            self.began = time.perf_counter()
        elif step == self.last:
            self.ended = time.perf_counter()


def steps_per_sec(loop: str, build: Build, steps: int, warm_up: int) -> float:
    """Builds the graph anew and trains it with one of `LOOPS`."""
    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        clock = Clock(warm_up, steps)
        with contextlib.redirect_stderr(io.StringIO()):
            LOOPS[loop](build(), folder, clock)
        return clock.steps_per_sec


class _FirstStep(Clock):
    """Says when the first step is made; there is a second one."""

    def __init__(self, requests: Requests) -> None:
        super().__init__(warm_up=1, steps=0)
        self._requests = requests

    def note(self, step: int) -> None:
        if step == self.first:
            self._requests.ready()


def serve_first_step(requests: Requests, loop: str, num_clones: int) -> None:
    """Trains the tiny network, and is ready after the first step."""
    tf1.disable_eager_execution()
    with tempfile.TemporaryDirectory() as folder:
        LOOPS[loop](networks.tiny(num_clones), folder, _FirstStep(requests))
    requests.wait()


def run_train(model: Any, folder: str, clock: Clock) -> None:
    """This project's loop."""
    model_deploy.train(model, folder, max_steps=clock.num_steps, hooks=[clock])


def run_slim(model: Any, folder: str, clock: Clock) -> None:
    """TF-Slim's loop."""
    steps = iter(range(1, clock.num_steps + 1))

    def step_fn(session: Any, *arguments: Any) -> Any:
        result = slim.learning.train_step(session, *arguments)
        clock.note(next(steps))
        return result

    slim.learning.train(
        model.train_op,
        folder,
        number_of_steps=clock.num_steps,
        summary_op=model.summary_op,
        train_step_fn=step_fn,
        log_every_n_steps=10,
    )


def run_monitored(model: Any, folder: str, clock: Clock) -> None:
    """TensorFlow's monitored session, with its default hooks."""
    with tf1.train.MonitoredTrainingSession(checkpoint_dir=folder) as session:
        for step in range(1, clock.num_steps + 1):
            session.run(model.train_op)
            clock.note(step)


def run_bare(model: Any, folder: str, clock: Clock) -> None:
    """A callable in a loop, and nothing else."""
    del folder
    with tf1.Session() as session:
        _initialize(session)
        step_fn = session.make_callable(model.train_op)
        for step in range(1, clock.num_steps + 1):
            step_fn()
            clock.note(step)


def run_op(op: Any, folder: str, clock: Clock) -> None:
    """`Session.run` in a loop, as scripts with towers written by hand have it."""
    del folder
    with tf1.Session() as session:
        _initialize(session)
        for step in range(1, clock.num_steps + 1):
            session.run(op)
            clock.note(step)


def _initialize(session: Any) -> None:
    session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
    session.run(tf1.tables_initializer())


LOOPS: dict[str, Callable[[Any, str, Clock], None]] = {
    "train": run_train,
    "slim.learning.train": run_slim,
    "MonitoredTrainingSession": run_monitored,
    "bare loop": run_bare,
    "towers": run_op,
}
