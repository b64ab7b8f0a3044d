"""`StopSignals`: signals that stop a run after the step."""

import os
import signal
import socket
import sys
import threading
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Makes SIGTERM and SIGINT ask for a stop in a `with` block; a second signal exits at once.

    Python runs signal handlers between its own instructions, so after a step and not within it.
    Therefore a thread reads the numbers of signals, which Python writes to a socket as they arrive,
    and can end the process in the middle of a step.

    Only the main thread can receive signals: in other threads this class does nothing.

    Attributes:
      received: the first signal, or None.
    """

    received: signal.Signals | None = None

    def __enter__(self) -> "StopSignals":
        self._active = threading.current_thread() is threading.main_thread()
        if not self._active:
            return self
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._old_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._old: dict[int, Any] = {each: signal.signal(each, self._note) for each in _SIGNALS}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._active:
            return
        signal.set_wakeup_fd(self._old_fd)
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._writer.close()  # ends the thread
        self._thread.join()
        self._reader.close()

    def _note(self, number: int, frame: FrameType | None = None) -> None:
        """Handles a signal by setting `received`, which the loop reads after each step."""
        if self.received is None:
            self.received = signal.Signals(number)

    def _watch(self) -> None:
        first = True
        while numbers := self._reader.recv(1):
            if numbers[0] not in _SIGNALS:
                continue
            name = signal.Signals(numbers[0]).name
            if not first:
                print(f"{name} again: exiting without saving", file=sys.stderr, flush=True)
                os._exit(128 + numbers[0])
            first = False
            self._note(numbers[0])  # so that threads that watch the step see it at once
            print(
                f"{name}: finishing the step and saving; once more to exit at once",
                file=sys.stderr,
                flush=True,
            )
