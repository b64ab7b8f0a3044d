"""`EventsFile`: TensorBoard's file of events."""

import contextlib
import itertools
import os
import socket
import time
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints import Storage
from model_deploy.training.shown.later import WrittenLater

# Seconds between two writes, as with `tf.summary.FileWriter`, whose thread ends at a full disk.
_EVERY_SECS = 120.0
_number = itertools.count()


class EventsFile:
    """Events that are written to a file of a folder; the file is made with the first.

    Where events cannot be written they wait, and go to a new file later.

    Args:
      folder: the folder, which is made if needed.
      suffix: of the file's name.
      storage: told of events that cannot be written.
    """

    def __init__(self, folder: str, suffix: str, storage: Storage) -> None:
        self._folder, self._suffix = folder, suffix
        self._writer: Any = None
        self._later = WrittenLater(
            "TensorBoard's events", storage, self._write, self._give_up, _EVERY_SECS
        )

    def add(self, event: Any) -> None:
        """Adds a `tf.Event`; the first is written at once."""
        self._later.add(event.SerializeToString())

    def close(self) -> None:
        """Writes remaining events and closes the file; says how many are lost."""
        self._later.close()

    def _write(self, events: Sequence[bytes]) -> None:
        if self._writer is None:
            self._writer = self._new_file()
        for event in events:
            self._writer.write(event)
        self._writer.flush()

    def _new_file(self) -> Any:
        file_systems.make_folders(self._folder)
        now = time.time()
        name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}"
        path = os.path.join(self._folder, f"{name}.{next(_number)}{self._suffix}")
        writer = tf.io.TFRecordWriter(path)
        writer.write(tf.Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        return writer

    def _give_up(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(tf.errors.OpError):
                writer.close()
