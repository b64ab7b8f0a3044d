"""Runs all steps in one session after another: a lost connection ends a session, not the run."""

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
from model_deploy.verification import CorruptionError

# How many sessions in a row may fail without a step: a parameter server that is just being
# restarted refuses some.
_MAX_TRIES = 50
# Seconds between two tries; TensorFlow reconnects once a second.
_RETRY_SECS = 0.2


def run_in_sessions(run: TrainingRun, opener: SessionOpener, signals: StopSignals) -> TrainResult:
    """Makes all steps of a run.

    Args:
      run: the run.
      opener: opens the sessions.
      signals: signals that end the run.

    Raises:
      TimeoutError: naming required tasks of the cluster that did not start in time.
      ConnectionError: with all-reduce, naming a worker that was lost.
      SystemExit: with 128 + the number of the signal, if a signal came while a step or this
        process waited for others.
      CorruptionError: from a step that gave two results, if the run is not to go back.
    """
    run.ledger.spend("start")
    if run.replicas is None:
        while True:
            try:
                return _alone(run, opener, signals)
            except CorruptionError as error:
                _go_back(run, error)
    run.replicas.heed(signals)
    run.replicas.wait_to_start()
    run.ledger.spend("waiting")
    return _Attempts(run, opener, run.replicas).until_the_end(signals)


def _alone(run: TrainingRun, opener: SessionOpener, signals: StopSignals) -> TrainResult:
    """Makes all steps of a run without a cluster, in one session."""
    with opener.open() as (session, coordinator):
        _start_hooks(run, session, coordinator)
        seconds = run.options.stall_timeout
        with StallWatch(
            session, (), math.inf, TimeoutError, report=say, stacks_after=seconds
        ) as watch:
            return run.to_the_end(session, signals, in_step=watch.in_step)


def _go_back(run: TrainingRun, error: CorruptionError) -> None:
    """Says where the next session goes on; raises the error if there is to be none."""
    if run.options.on_corruption == "end" or not (
        run.verification and run.verification.may_go_back
    ):
        raise error
    newest = "the newest checkpoint" if run.writer is None else run.writer.newest
    say(f"{error}; going back to {newest or 'the start'}")


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
        """Opens sessions until one has made the last step."""
        while True:
            try:
                self._in_one_session(signals)
            except tf.errors.OpError as error:
                # After the end the parameter servers may be gone before the session is closed.
                if self._result is None:
                    self._wait_to_retry(error)
            except CorruptionError as error:  # in all workers
                _go_back(self._run, error)
            except RuntimeError as error:  # raised by TensorFlow for a closed session
                self._raise_reason(error)
                raise
            if self._result is not None:
                return self._result

    def _in_one_session(self, signals: StopSignals) -> None:
        """Opens one session and makes steps in it, to the end of the run if nothing fails."""
        self._is_first_of_session = True
        self._watch = None
        with contextlib.ExitStack() as stack:
            session, coordinator = stack.enter_context(self._opener.open())
            self._watch = stack.enter_context(self._replicas.watch(session))
            _start_hooks(self._run, session, coordinator)
            self._result = self._run.to_the_end(
                session, signals, self._note_step, self._watch.in_step
            )

    def _note_step(self, step: int) -> None:
        """Notes the global step, first at the start of a session, then after each step."""
        if not self._is_first_of_session:
            self._tries_left = _MAX_TRIES
        elif self._last_step is not None:
            lost = self._last_step - step
            lines = f": {lost} steps are lost" if lost > 0 else ""
            say(f"going on from step {step}{lines}")
        self._is_first_of_session = False
        self._last_step = step

    def _raise_reason(self, error: Exception) -> None:
        """Raises the reason why this process closed the session itself, if it did."""
        if self._watch is not None and self._watch.error is not None:
            raise self._watch.error from error
        self._replicas.exit_if_stopped()

    def _wait_to_retry(self, error: tf.errors.OpError) -> None:
        """Waits, after an error that ended a session, until a new session can be tried."""
        self._raise_reason(error)
        self._tries_left -= 1
        if self._tries_left == 0:
            raise error
        self._replicas.recover(error, self._last_step or 0, made_steps=self._watch is not None)
        time.sleep(_RETRY_SECS)
        self._run.ledger.spend("waiting")
