"""`EventsFile`: TensorBoard's file of events, written by a thread, and kept where it cannot be."""

import collections
import contextlib
import itertools
import os
import socket
import sys
import time
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints import OneAtATime, Storage

# Seconds between two writes, as with `tf.summary.FileWriter`, whose thread ends at a full disk.
_EVERY_SECS = 120.0
# As many events wait in memory; older ones are dropped.
_MOST_EVENTS = 10_000
_WHAT = "TensorBoard's events"
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
        self._folder, self._suffix, self._storage = folder, suffix, storage
        self._events: collections.deque[bytes] = collections.deque()
        self._dropped = 0
        self._thread = OneAtATime()
        self._writer: Any = None
        self._next = 0.0

    def add(self, event: Any) -> None:
        """Adds a `tf.Event`; the first is written at once."""
        is_free = not self._thread.is_running  # else the oldest are being written
        if len(self._events) >= _MOST_EVENTS:
            self._dropped += 1
            if not is_free:
                return
            self._events.popleft()
        self._events.append(event.SerializeToString())
        now = time.monotonic()
        if is_free and (now >= self._next or self._storage.is_overdue(_WHAT)):
            self._next = now + _EVERY_SECS
            self._thread.wait()
            self._thread.start(_WHAT, self._write)

    def close(self) -> None:
        """Writes remaining events and closes the file; says how many are lost."""
        self._thread.wait()
        if self._events:
            self._write()
        self._close()
        lost = self._dropped + len(self._events)
        if lost:
            print(f"warning: {lost} events are lost", file=sys.stderr, flush=True)

    def _write(self) -> None:
        """Writes all events that are there."""
        count = len(self._events)
        with self._storage.trying(_WHAT):
            try:
                if self._writer is None:
                    self._open()
                for event in itertools.islice(list(self._events), count):
                    self._writer.write(event)
                self._writer.flush()
            except (OSError, tf.errors.OpError):
                self._close()
                raise
            for _ in range(count):
                self._events.popleft()

    def _open(self) -> None:
        file_systems.make_folders(self._folder)
        now = time.time()
        name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}"
        path = os.path.join(self._folder, f"{name}.{next(_number)}{self._suffix}")
        self._writer = tf.io.TFRecordWriter(path)
        first = tf.Event(wall_time=now, file_version="brain.Event:2")
        self._writer.write(first.SerializeToString())

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(tf.errors.OpError):
                writer.close()
