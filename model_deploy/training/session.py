"""Opens the session of a run: variables restored or initialized, inputs and queues started."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.checkpoints import CheckpointWriter, Source
from model_deploy.cluster import close_session, run_unless_refused
from model_deploy.training.replicas.shared_variables import SharedVariables

# Seconds between two looks at whether the chief has initialized the variables.
_POLL_SECS = 0.05


class Start(NamedTuple):
    """How a session gets the values of its variables.

    Attributes:
      is_chief: whether this process initializes the variables; other processes wait for that.
      writer: the chief's writer of checkpoints, whose saver restores.
      source: where the run's checkpoint comes from; without one variables are initialized.
      init_fn: called with the session after variables were initialized, but not restored.
      owns_variables: whether every process has, and initializes, variables of its own.
      shared: knows whether the variables on parameter servers have values; None for variables that
        end with this process, and without a cluster.
      hooks: the `session_hooks` of the deployment.
      new_wait: returns a function that is called repeatedly while this process waits for the chief.
      watch: returns a context manager for a session, in which the hooks are called.
    """

    is_chief: bool
    writer: CheckpointWriter | None = None
    source: Source = Source()
    init_fn: Callable[[Any], None] | None = None
    owns_variables: bool = False
    shared: SharedVariables | None = None
    hooks: Sequence[Any] = ()
    new_wait: Callable[[], Callable[[], None]] = lambda: lambda: None
    watch: Callable[[Any], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext


class SessionOpener:
    """Opens sessions with TensorFlow's session manager; adds ops to the default graph.

    Args:
      master: address of a TensorFlow server, or ''.
      config: a `tf.ConfigProto`; by default one with soft placement.
      start: how the variables get their values.
    """

    def __init__(self, master: str, config: Any, start: Start) -> None:
        self._master = master
        self._config = config or tf.ConfigProto(allow_soft_placement=True)
        self._start = start
        self._init_op = tf.global_variables_initializer()
        self._tables_op = tf.tables_initializer()
        # Tables and inputs start after the variables, so that they can read restored values; with
        # own variables per process, after the process got the chief's values.
        late = [] if start.owns_variables else [self._tables_op]
        self._local_init_op = tf.group(tf.local_variables_initializer(), *late)
        self._manager = tf.train.SessionManager(
            local_init_op=self._local_init_op,
            ready_op=_missing(None),
            ready_for_local_init_op=_missing(tf.global_variables()),
            recovery_wait_secs=_POLL_SECS,
        )

    @property
    def hooks(self) -> Sequence[Any]:
        """The `session_hooks` of the deployment."""
        return self._start.hooks

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[Any, Any]]:
        """Opens a session in which variables and inputs are ready, and queue runners run.

        Yields:
          `(session, coordinator)`.
        """
        start = self._start
        session = run_unless_refused(self._new_session)
        coordinator = tf.train.Coordinator()
        threads: list[Any] = []
        try:
            with start.watch(session):
                for hook in start.hooks:
                    hook.after_create_session(session, coordinator)
            if start.owns_variables:
                session.run(self._tables_op)
            if start.is_chief and start.shared is not None:
                self._save_first(start.shared, session)
                start.shared.mark(session, True)
            if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
                threads = tf.train.start_queue_runners(session, coordinator)
            yield session, coordinator
        finally:
            coordinator.request_stop()
            close_session(session)
            if start.writer is not None:
                start.writer.end()
            coordinator.join(threads, stop_grace_period_secs=10, ignore_live_threads=True)

    def _new_session(self) -> Any:
        """Returns a session with initialized variables, by the process's role."""
        start = self._start
        if start.shared is None:
            if start.is_chief or start.owns_variables:
                return self._initialized()
            return self._manager.wait_for_session(self._master, config=self._config)
        if start.is_chief:
            return self._chiefs_session(start.shared)
        return self._followers_session(start.shared)

    def _initialized(self) -> Any:
        """Returns a session after restoring or initializing the variables."""
        writer = self._start.writer
        newest = None if writer is None else writer.newest or self._start.source.checkpoint
        if writer is None or newest is None:
            return self._prepared(None)

        def restored(checkpoint: str) -> Any:
            session = self._prepared(writer.saver_of(checkpoint), checkpoint)
            writer.newest = checkpoint
            writer.restore_changes(session, checkpoint)
            return session

        return self._start.source.use(restored, newest)

    def _prepared(self, saver: Any, checkpoint: str | None = None) -> Any:
        """Returns a session after restoring a checkpoint, or initializing the variables."""
        return self._manager.prepare_session(
            self._master,
            init_op=self._init_op,
            saver=saver,
            checkpoint_filename_with_path=checkpoint,
            config=self._config,
            init_fn=self._start.init_fn,
        )

    def _chiefs_session(self, shared: SharedVariables) -> Any:
        """Returns a session with the parameter servers' present values, or new ones."""
        session = tf.Session(self._master, config=self._config)
        if shared.are_set(session):
            session.run(self._local_init_op)
            for hook in self._start.hooks:
                if hasattr(hook, "mend"):
                    hook.mend(session)
            step = session.run(tf.train.get_global_step())
            print(f"the parameter servers are at step {step}: going on there", flush=True)
            if self._start.writer is not None:
                self._start.writer.newest = (
                    self._start.writer.newest or self._start.source.checkpoint
                )
            return session
        shared.mark(session, False)
        session.close()
        session = self._initialized()
        for hook in self._start.hooks:
            if hasattr(hook, "start_anew"):
                hook.start_anew(session)
        return session

    def _save_first(self, shared: SharedVariables, session: Any) -> None:
        """Saves the initial values if the run may go back to them and has no checkpoint."""
        writer = self._start.writer
        if shared.goes_back and writer is not None and writer.newest is None:
            writer.save(session, int(session.run(tf.train.get_global_step())))

    def _followers_session(self, shared: SharedVariables) -> Any:
        """Returns a session once the chief has set the variables."""
        session = tf.Session(self._master, config=self._config)
        wait = self._start.new_wait()
        while not shared.are_set(session):
            wait()
            time.sleep(_POLL_SECS)
        session.run(self._local_init_op)
        return session


def _missing(variables: Any) -> Any:
    """Returns names of uninitialized variables; of all, local ones included, for None."""
    names = tf.report_uninitialized_variables(variables)
    names.mark_used()  # silences a warning in workers that do not use it
    return names
