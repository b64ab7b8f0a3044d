"""A run in one session after the other: a lost connection ends a session, not the run."""

import contextlib
import math
import time
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.training.replicas.replicas import Replicas, StepWatch, say
from model_deploy.training.replicas.stalls import StallWatch
from model_deploy.training.run import TrainingRun, TrainResult
from model_deploy.training.session import SessionOpener
from model_deploy.training.stopping import StopSignals

# Sessions that may fail one after the other without a step in between: a parameter server
# that is just being started again refuses some.
_MAX_TRIES = 50
# Seconds between two tries; TensorFlow connects anew once in a second.
_RETRY_SECS = 0.2


def run_in_sessions(run: TrainingRun, opener: SessionOpener, signals: StopSignals) -> TrainResult:
    """Makes all steps of a run.

    Args:
      run: the run.
      opener: opens its sessions.
      signals: end it.

    Raises:
      TimeoutError: naming tasks of the cluster that were needed and did not come.
      ConnectionError: naming a worker that was lost, with all-reduce.
      SystemExit: with 128 + the number of the signal, if one came while a step or this
        process waited for others.
    """
    if run.replicas is None:
        with opener.open() as (session, coordinator):
            _start_hooks(run, session, coordinator)
            seconds = run.options.stall_timeout
            with StallWatch(
                session, (), math.inf, TimeoutError, report=say, stacks_after=seconds
            ) as watch:
                return run.to_the_end(session, signals, in_step=watch.in_step)
    run.replicas.heed(signals)
    run.replicas.wait_to_start()
    return _Attempts(run, opener, run.replicas).until_the_end(signals)


def _start_hooks(run: TrainingRun, session: Any, coordinator: Any) -> None:
    for hook in run.hooks:
        hook.after_create_session(session, coordinator)


class _Attempts:
    """The sessions of one run in a cluster."""

    def __init__(self, run: TrainingRun, opener: SessionOpener, replicas: Replicas) -> None:
        self._run = run
        self._opener = opener
        self._replicas = replicas
        self._last_step: int | None = None
        self._is_first_of_session = True
        self._tries_left = _MAX_TRIES
        self._watch: StepWatch | StallWatch | None = None
        self._result: TrainResult | None = None

    def until_the_end(self, signals: StopSignals) -> TrainResult:
        """Opens sessions until one has come to the end."""
        while True:
            try:
                self._in_one_session(signals)
            except tf.errors.OpError as error:
                # After the end the parameter servers may be gone before the session is closed.
                if self._result is None:
                    self._after(error)
            except RuntimeError as error:  # TensorFlow's for a session that is closed
                self._raise_reason(error)
                raise
            if self._result is not None:
                return self._result

    def _in_one_session(self, signals: StopSignals) -> None:
        self._is_first_of_session = True
        self._watch = None
        with contextlib.ExitStack() as stack:
            session, coordinator = stack.enter_context(self._opener.open())
            self._watch = stack.enter_context(self._replicas.watch(session))
            _start_hooks(self._run, session, coordinator)
            self._result = self._run.to_the_end(session, signals, self._made, self._watch.in_step)

    def _made(self, step: int) -> None:
        """A step was made; the first number of a session is that of its start."""
        if not self._is_first_of_session:
            self._tries_left = _MAX_TRIES
        elif self._last_step is not None:
            lost = self._last_step - step
            lines = f": {lost} steps are lost" if lost > 0 else ""
            say(f"going on from step {step}{lines}")
        self._is_first_of_session = False
        self._last_step = step

    def _raise_reason(self, error: Exception) -> None:
        """Raises why this process has closed the session itself, if it has."""
        if self._watch is not None and self._watch.error is not None:
            raise self._watch.error from error
        self._replicas.exit_if_stopped()

    def _after(self, error: tf.errors.OpError) -> None:
        self._raise_reason(error)
        self._tries_left -= 1
        if self._tries_left == 0:
            raise error
        self._replicas.recover(error, self._last_step or 0, made_steps=self._watch is not None)
        time.sleep(_RETRY_SECS)
