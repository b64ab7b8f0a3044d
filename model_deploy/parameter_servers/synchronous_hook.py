"""`SynchronousHook`: a replica's part in synchronous updates, in each of its sessions."""

import contextlib
import threading
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from model_deploy.cluster import close_session, run_unless_refused, wait_at_exit
from model_deploy.commands import line_of
from model_deploy.parameter_servers.begun import Begun

# How long an unresponsive server may hold up a chief that leaves its world.
_LEAVE_MSECS = 2000


class SynchronousHook(tf.train.SessionRunHook):
    """Starts a replica's part in synchronous updates; on the chief a thread makes the updates.

    Where nobody says how a chief's session has got the variables, as in a
    `tf.train.MonitoredSession`, it has restored or initialized them.
    """

    def __init__(
        self,
        start: Any,
        update: Any,
        start_anew: Any,
        woken: Any,
        shrunk: Sequence[Any],
        *,
        repeats: bool,
        begun: Begun | None,
    ) -> None:
        self._start = start
        self._update = update
        self._start_anew = start_anew
        self._woken = woken
        self._shrunk = shrunk
        self._begun = begun
        self._settled_in: Any = None
        self.repeats = repeats

    def start_anew(self, session: Any) -> None:
        """Starts anew, on the chief, after the variables have been given other values.

        Drops gradients at the old values, and lets all replicas go on from the new ones.
        """
        self._settled_in = session
        session.run(self._start_anew)

    def mend(self, session: Any) -> None:
        """Makes anew, on a chief that goes on in a new session, the step in which it was lost.

        Means that it had taken are lost, and replicas wait for an update that needs them.
        """
        if self._begun is not None:
            self.start_anew(session)

    def wake(self, session: Any) -> None:
        """Ends the steps of replicas, on the chief, that wait for an update it will not make."""
        run_unless_refused(lambda: session.run(self._woken))

    def leave(self, session: Any) -> None:
        """Drops, when a world is over, its accumulated gradients on the parameter servers.

        Removing the accumulators would crash a server in which a stopped process still waits.
        """
        session.run(self._shrunk, options=tf.RunOptions(timeout_in_ms=_LEAVE_MSECS))

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Lets this replica begin at the global step, and the chief aggregate."""
        begun = None if self._settled_in is session else self._begun
        # At the first start others may have begun their first step, which counts.
        if begun is not None and session.run(begun.before):
            self.start_anew(session)
        session.run(self._start)
        if self._update is not None:
            # Not the coordinator's: it would wait for the thread before the session is
            # closed, which is what ends the thread.
            thread = threading.Thread(target=self._aggregate, args=(session, coord), daemon=True)
            thread.start()
            wait_at_exit(thread)

    def end(self, session: Any) -> None:
        """Notes that this session was not lost: the next one has nothing to make anew."""
        if self._begun is not None:
            with contextlib.suppress(tf.errors.OpError):  # servers may have ended with the run
                session.run(self._begun.remove_marks)

    def _aggregate(self, session: Any, coord: Any) -> None:
        """Makes updates, in the chief's thread, until the session is closed."""
        try:
            update = session.make_callable(self._update)
            while not coord.should_stop():
                if self.repeats:
                    run_unless_refused(update)
                else:
                    update()
        except (tf.errors.CancelledError, RuntimeError):
            pass  # the session is closed
        except tf.errors.OpError as error:
            if coord.should_stop():  # and the session closes
                return
            reason = line_of(error)
            logging.warning("the chief cannot update the variables: %s", reason)
            coord.request_stop(error)
            # The chief's own step would wait forever for the update.
            close_session(session)
