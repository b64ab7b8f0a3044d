"""The session of a run, and the files that it writes: checkpoints and events."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.training.checkpoints import check_fits

CHECKPOINT_NAME = "model.ckpt"


class RunWriter:
    """Writes the checkpoints and TensorBoard events of one run.

    Args:
      train_dir: folder to write to.
      keep_checkpoints: how many checkpoints to keep; only checkpoints that this
        writer made are ever deleted.
    """

    def __init__(self, train_dir: str, keep_checkpoints: int) -> None:
        self._train_dir = train_dir
        self._saved_step: int | None = None
        self._events: Any = None
        self.saver = tf.train.Saver(max_to_keep=keep_checkpoints, save_relative_paths=True)

    def add_summary(self, session: Any, summary: bytes, step: int) -> None:
        """Appends a serialized summary to the events."""
        if self._events is None:
            self._events = tf.summary.FileWriter(self._train_dir, session.graph)
        self._events.add_summary(summary, step)

    def save(self, session: Any, step: int) -> None:
        """Writes the checkpoint `model.ckpt-<step>`, unless it was the last one written."""
        if step != self._saved_step:
            path = os.path.join(self._train_dir, CHECKPOINT_NAME)
            self.saver.save(session, path, global_step=step)
            self._saved_step = step

    def forget_earlier_checkpoints(self) -> None:
        """Keeps checkpoints that were restored, but not made here, from being deleted."""
        self.saver.set_last_checkpoints_with_time([])

    def close(self) -> None:
        """Writes out and closes the events."""
        if self._events is not None:
            self._events.close()


@contextlib.contextmanager
def open_session(
    train_dir: str, master: str, is_chief: bool, config: Any, writer: RunWriter | None
) -> Iterator[Any]:
    """A session in which all variables and inputs are ready, and queues are being filled.

    The chief restores the newest checkpoint in `train_dir`, or else initializes the
    variables; other workers wait for it.  Tables and inputs are initialized after
    that, so that they can read restored variables.

    Args:
      train_dir: folder of the checkpoints.
      master: address of a TensorFlow server, or ''.
      is_chief: whether this process is the chief.
      config: a `tf.ConfigProto`.
      writer: the chief's writer; None for other workers.

    Raises:
      ValueError: if the checkpoint is not one of this graph's variables.
    """
    if writer is not None:
        check_fits(train_dir)
    manager = tf.train.SessionManager(
        local_init_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer()),
        ready_op=tf.report_uninitialized_variables(),
        ready_for_local_init_op=tf.report_uninitialized_variables(tf.global_variables()),
    )
    if is_chief and writer is not None:
        session = manager.prepare_session(
            master,
            init_op=tf.global_variables_initializer(),
            saver=writer.saver,
            checkpoint_dir=train_dir,
            config=config,
        )
        writer.forget_earlier_checkpoints()
    else:
        session = manager.wait_for_session(master, config=config)
    with session:
        coordinator = tf.train.Coordinator()
        threads = []
        if tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS):
            threads = tf.train.start_queue_runners(session, coordinator)
        try:
            yield session
        finally:
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=10, ignore_live_threads=True)
