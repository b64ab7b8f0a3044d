"""`TaskOutput`: the lines of one task, in its log file and, prefixed, on the terminal."""

import collections
from pathlib import Path
from typing import BinaryIO

TAIL_LINES = 20
# A line that does not end, such as a progress bar's, is cut here on the terminal.
_MAX_LINE_BYTES = 1 << 16


class TaskOutput:
    """Takes the output of a task, piece by piece.

    Args:
      name: of the task, such as `worker 1`; the prefix of its lines.
      path: its log file, which a restarted task continues.
      terminal: where the prefixed lines go.
    """

    def __init__(self, name: str, path: Path, terminal: BinaryIO) -> None:
        self.path = path
        self.tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        self._prefix = f"{name}| ".encode()
        self._file = path.open("ab")
        self._terminal = terminal
        self._rest = b""

    def write(self, piece: bytes) -> None:
        """Passes on the bytes, to the terminal in whole lines."""
        self._file.write(piece)
        self._file.flush()
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > _MAX_LINE_BYTES:
            lines, self._rest = [*lines, self._rest], b""
        self._show(lines)

    def end_line(self) -> None:
        """Shows a last line that has no end."""
        if self._rest:
            self._show([self._rest])
            self._rest = b""
            self._file.write(b"\n")
            self._file.flush()

    def close(self) -> None:
        """Closes the log file."""
        self.end_line()
        self._file.close()

    def _show(self, lines: list[bytes]) -> None:
        for line in lines:
            # A terminal would not show what a carriage return overwrites, either.
            visible = line.rstrip(b"\r").rpartition(b"\r")[2]
            self.tail.append(visible.decode(errors="replace"))
            self._terminal.write(self._prefix + visible + b"\n")
        if lines:
            self._terminal.flush()
