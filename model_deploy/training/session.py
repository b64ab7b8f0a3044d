"""The session of a run: variables restored or initialized, inputs and queues started."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.training.saving import CheckpointWriter

# Seconds between two looks at whether the chief has initialized the variables.
_POLL_SECS = 0.2


class Start(NamedTuple):
    """How a session gets its variables.

    Attributes:
      is_chief: whether this process initializes them; others wait until it has.
      writer: the chief's, whose saver restores the checkpoint.
      checkpoint: path of the checkpoint to restore; None to initialize the variables.
      init_fn: called with the session after they were initialized, not after they
        were restored.
    """

    is_chief: bool
    writer: CheckpointWriter | None = None
    checkpoint: str | None = None
    init_fn: Callable[[Any], None] | None = None


class SessionOpener:
    """Opens sessions with TensorFlow's session manager; adds ops to the default graph.

    Args:
      master: address of a TensorFlow server, or ''.
      config: a `tf.ConfigProto`; soft placement if not given.
      start: how the variables get their values.
    """

    def __init__(self, master: str, config: Any, start: Start) -> None:
        self._master = master
        self._config = config or tf.ConfigProto(allow_soft_placement=True)
        self._start = start
        self._init_op = tf.global_variables_initializer()
        # Tables and inputs come after the variables, so that they can read restored ones.
        self._manager = tf.train.SessionManager(
            local_init_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer()),
            ready_op=tf.report_uninitialized_variables(),
            ready_for_local_init_op=tf.report_uninitialized_variables(tf.global_variables()),
            recovery_wait_secs=_POLL_SECS,
        )

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[Any, Any]]:
        """A session in which variables and inputs are ready, and queues are being filled.

        Yields:
          `(session, coordinator)`.
        """
        with self._new_session() as session:
            coordinator = tf.train.Coordinator()
            threads = []
            if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
                threads = tf.train.start_queue_runners(session, coordinator)
            try:
                yield session, coordinator
            finally:
                coordinator.request_stop()
                coordinator.join(threads, stop_grace_period_secs=10, ignore_live_threads=True)

    def _new_session(self) -> Any:
        start = self._start
        if start.writer is None:
            return self._manager.wait_for_session(self._master, config=self._config)
        session = self._manager.prepare_session(
            self._master,
            init_op=self._init_op,
            saver=start.writer.saver if start.checkpoint else None,
            checkpoint_filename_with_path=start.checkpoint,
            config=self._config,
            init_fn=start.init_fn,
        )
        start.writer.newest = start.checkpoint
        return session
