"""`Replicas`: the other processes of a cluster, from the view of one worker's training loop."""

import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import tensorflow.compat.v1 as tf

from model_deploy import cluster as cluster_lib
from model_deploy.checkpoints import is_lost_connection
from model_deploy.cluster import (
    Cluster,
    Task,
    end_after_refusal,
    is_given_up,
    is_refusal,
    names_of,
    unreachable,
    wait_for_loss,
)
from model_deploy.commands import line_of, tell
from model_deploy.deployment import DeployedModel
from model_deploy.parameter_servers import noted_fence, repeats_steps
from model_deploy.training.replicas.shared_variables import (
    SharedVariables,
    VariablesOfWorld,
    check_are_shared,
)
from model_deploy.training.replicas.stalls import REPORT_SECS, StallWatch
from model_deploy.training.stopping import StopSignals

# Seconds that a lost worker has to come back at the end of a run.
_GRACE_SECS = 2.0
# Seconds without a step after which an asynchronous one, which waits for nobody, counts as lost.
_LOST_SECS = 60.0
# Seconds without a step after which a lost worker is noticed, with all-reduce.
_NOTICE_SECS = 2.0
# Seconds that a worker whose own part of a step has failed has to end before others do.
_GIVEN_UP_SECS = 30.0
_NOBODY_ALONE = (
    "with all-reduce nobody can go on alone: start all workers again, they go on from the newest "
    "checkpoint"
)


class StepWatch(Protocol):
    """The interface of objects that watch steps, in place of a `StallWatch`, and may end them.

    Attributes:
      error: why no more steps can be made, or None.
    """

    error: OSError | None

    def in_step(self, running: bool) -> None:
        """Is told that a step begins or has ended; raises if no step may begin."""

    def heed(self, is_stopped: Callable[[], bool]) -> None:
        """Sets a function: once it returns True, steps that lack a worker are given up."""


class Replicas:
    """Waits for other processes, divides the last steps among them, and ends the run in order.

    Adds ops to the default graph.

    Args:
      cluster: the cluster and this process's task, a worker.
      model: what `deploy` returned.
      start_timeout: seconds to wait for the tasks that are required at the start.
      stall_timeout: seconds without a step after which a missing task is an error.
      watch: watches the steps; by default a `StallWatch`.

    Attributes:
      cluster: as given.
      shared: the variables on parameter servers; None without parameter servers.
      repeats_steps: whether a step that TensorFlow has refused may be made again.

    Raises:
      ValueError: if this process is not a worker.
    """

    def __init__(
        self,
        cluster: Cluster,
        model: DeployedModel,
        *,
        start_timeout: float,
        stall_timeout: float,
        watch: StepWatch | None = None,
    ) -> None:
        if cluster.job_name != "worker":
            raise ValueError(f"job_name must be worker to train, got {cluster.job_name!r}")
        self.cluster = cluster
        self._start_timeout = start_timeout
        self._stall_timeout = stall_timeout
        self._is_synchronous = model.is_synchronous
        self._num_updaters = len(cluster.workers) * max(1, len(model.clone_updates))
        fence = noted_fence()
        self._end_ops = cluster_lib.build_end_ops(cluster, "" if fence is None else fence.container)
        self.shared: SharedVariables | None = None
        if cluster.ps:
            if not cluster.is_chief or fence is not None:  # another worker may become the chief
                check_are_shared(tf.global_variables(), cluster.own)
            self.shared = (
                SharedVariables(cluster.ps[0].device)
                if fence is None
                else VariablesOfWorld(fence, cluster.is_chief)
            )
        self._signals: StopSignals | None = None
        self._own_watch = watch
        self._waited_in: Any = None
        is_alone = self.shared is not None or len(cluster.workers) == 1  # else others wait in it
        self.repeats_steps = is_alone and repeats_steps(fence)

    def heed(self, signals: StopSignals) -> None:
        """Lets signals end waiting as well."""
        self._signals = signals
        if self._own_watch is not None:
            self._own_watch.heed(lambda: self._received is not None)

    def exit_if_stopped(self) -> None:
        """Raises `SystemExit` for a received signal, or the watch's error."""
        if self._received is not None:
            raise SystemExit(128 + self._received)
        if self._own_watch is not None and self._own_watch.error is not None:
            raise self._own_watch.error

    @property
    def _received(self) -> signal.Signals | None:
        return None if self._signals is None else self._signals.received

    def _is_stopped(self) -> bool:
        watch = self._own_watch
        return self._received is not None or (watch is not None and watch.error is not None)

    def _wait_for(self, tasks: Sequence[Task], timeout: float) -> None:
        cluster_lib.wait_for_tasks(tasks, timeout, report=say, stop=self._is_stopped)
        self.exit_if_stopped()

    @property
    def shares_steps(self) -> bool:
        """Whether other workers make independent steps on the same variables."""
        return not self._is_synchronous and len(self.cluster.workers) > 1

    @property
    def _others(self) -> list[Task]:
        """The other tasks on which a step depends."""
        workers = self.cluster.workers if self._is_synchronous else ()
        return [task for task in (*self.cluster.ps, *workers) if task != self.cluster.own]

    def wait_to_start(self) -> None:
        """Waits for the tasks that are required at the start.

        Raises:
          TimeoutError: naming tasks that did not start in time.
          SystemExit: after a signal.
        """
        self._wait_for(cluster_lib.tasks_needed(self.cluster), self._start_timeout)

    def waiting_for_chief(self) -> Callable[[], None]:
        """Returns a function to call repeatedly while the chief has not set the variables.

        The function prints a line every few seconds, raises `TimeoutError` after `start_timeout`,
        and `SystemExit` after a signal.
        """
        started = reported = time.monotonic()
        chief = names_of(self.cluster.workers[:1])

        def wait() -> None:
            nonlocal reported
            self.exit_if_stopped()
            now = time.monotonic()
            if now - started >= self._start_timeout:
                raise TimeoutError(
                    "start_timeout must be long enough for the chief to set the variables, got "
                    f"{self._start_timeout:g} s without {chief}"
                )
            if now - reported >= REPORT_SECS:
                say(f"waiting for {chief} to set the variables")
                reported = now

        return wait

    def watch(self, session: Any) -> contextlib.AbstractContextManager[StepWatch | StallWatch]:
        """Returns a context manager that watches the steps of a session."""
        if self._own_watch is not None:
            return contextlib.nullcontext(self._own_watch)
        if self.shared is None:  # no worker can come back, and TensorFlow may never notice a loss
            return self._stall_watch(session, _NOTICE_SECS, _none_goes_on_alone)

        def describe(names: str) -> OSError:
            return TimeoutError(
                "stall_timeout must be long enough for a step, got "
                f"{self._stall_timeout:g} s without {names}"
            )

        return self._stall_watch(session, self._stall_timeout, describe)

    @contextlib.contextmanager
    def watching_start(self, session: Any) -> Iterator[None]:
        """Watches the start of a session by all-reduce, which waits for all workers.

        Raises:
          ConnectionError: naming a worker that was lost.
        """
        if self.shared is not None or self._own_watch is not None:
            yield
            return
        with self.watch(session) as watch:
            watch.in_step(True)
            try:
                yield
            except (tf.errors.OpError, RuntimeError) as error:
                if watch.error is None:
                    raise
                raise watch.error from error
            finally:
                watch.in_step(False)

    def _stall_watch(
        self, session: Any, timeout: float, describe: Callable[[str], OSError]
    ) -> StallWatch:
        return StallWatch(
            session,
            self._others,
            timeout,
            describe,
            report=say,
            stop=self._is_stopped,
            stacks_after=self._stall_timeout,
            lost_after=self._lost_secs,
        )

    @property
    def _lost_secs(self) -> float:
        """Seconds after which a step counts as lost by TensorFlow.

        A synchronous one may as well wait for a worker that is slow.  By all-reduce no step runs
        in other processes, and none is lost.
        """
        if self.shared is None:
            return math.inf
        return self._stall_timeout if self._is_synchronous else _LOST_SECS

    def last_shared_step(self, max_steps: int) -> int:
        """Returns the last step up to which replicas make independent steps.

        With n asynchronous replicas (or clones), each starts a step only if its previous step had
        at most the number max_steps - n.  When that number is passed, each of the n may still be
        in a step, which makes max_steps at most.
        """
        return max_steps - self._num_updaters + 1

    def leave(self, session: Any, step: int) -> None:
        """Tells the chief that this worker makes no more steps."""
        if self._end_ops is not None:
            say(f"{self.cluster.own} has made its last step, at step {step}")
            cluster_lib.signal_done(session, self._end_ops, self.cluster)

    def wait_for_others(self, session: Any, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Waits, on the chief, until no other worker makes steps; once in a session."""
        if self._end_ops is not None and self._waited_in is not session:
            self._waited_in = session
            missing = cluster_lib.wait_for_workers(
                session,
                self._end_ops,
                self.cluster,
                _GRACE_SECS,
                is_gone=lambda task: self._is_stopped() or bool(unreachable([task])),
                meanwhile=meanwhile,
            )
            if missing:
                say(f"the run ends without {names_of(missing)}")

    def end_servers(self, session: Any) -> None:
        """Ends the parameter servers, on the chief, when everything is saved."""
        if self._end_ops is not None:
            cluster_lib.end_servers(session, self._end_ops, self.cluster)

    def recover(self, error: tf.errors.OpError, step: int, *, made_steps: bool = True) -> None:
        """Reports the lost tasks, and waits until they are back.

        Args:
          error: the error that ended the session.
          step: number of the last step.
          made_steps: whether the session has begun to make steps: it is unknown whether others
            have counted a step that was cut short.

        Raises:
          ConnectionError: naming the lost tasks, with all-reduce, where no worker can continue
            alone, and in elastic runs, where a new world is needed.
          TimeoutError: naming tasks that did not come back in `stall_timeout` seconds.
          SystemExit: after a signal; with 75 by all-reduce if TensorFlow has refused a part of a
            step, for which elastic runs get the error itself.
          tf.errors.OpError: the error itself, if it is not about a lost task.
        """
        missing = self._lost_in_step(error, step)
        # Of what is no step, such as the sums of metrics: elastic runs get it themselves.
        is_refused = is_refusal(error) and self.shared is not None and self._own_watch is None
        is_lost = is_lost_connection(error) or (self.shared is None and missing)
        if not is_lost and not is_refused:
            raise error
        what = f"lost the connection to {names_of(missing)} after step {step}"
        if not missing:
            what = f"the step after {step} failed, and all tasks answer: {line_of(error)}"
        if self.shared is None:
            raise ConnectionError(f"{what}; {_NOBODY_ALONE}") from error
        if self._own_watch is not None and made_steps:
            raise ConnectionError(what) from error
        say(f"{what}; going on {'once it is back' if missing else 'anew'}")
        servers = self.cluster.ps
        try:
            self._wait_for(servers, self._stall_timeout)
        except TimeoutError:
            raise TimeoutError(
                f"stall_timeout must be long enough for tasks to come back, got "
                f"{self._stall_timeout:g} s without {names_of(unreachable(servers))}"
            ) from error

    def _lost_in_step(self, error: tf.errors.OpError, step: int) -> list[Task]:
        """Returns the tasks that are gone.

        By all-reduce, outside of elastic runs, a worker whose own part of a step has failed ends
        first, and says why; others that have given the step up wait for that.  A worker that makes
        a refused part again may wait for ever: then a worker that has given it up ends.
        """
        others = [task for task in self.cluster.tasks if task != self.cluster.own]
        if self.shared is None and self._own_watch is None:
            if is_refusal(error):
                end_after_refusal(error, f"the step after {step}")
            if is_given_up(error):
                timeout = min(self._stall_timeout, _GIVEN_UP_SECS)
                gone = wait_for_loss(others, timeout, stop=self._is_stopped)
                self.exit_if_stopped()
                if not gone:
                    end_after_refusal(error, f"another worker's part of the step after {step}")
                return gone
        return unreachable(others)


def _none_goes_on_alone(names: str) -> OSError:
    return ConnectionError(f"lost the connection to {names}; {_NOBODY_ALONE}")


def say(text: str) -> None:
    """Prints a line to stderr at once, like the progress."""
    tell(text)
