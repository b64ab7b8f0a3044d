"""`Tracker`: what a tracker of experiments can be told of a run."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class TrackedRun(NamedTuple):
    """A run, as a tracker is told of it where a process begins or goes on with it.

    Attributes:
      name: name of the run: that of its folder.
      options: the settings of the run, plain values by name.
      known_as: what the tracker's `start` returned in an earlier process of the run; None in the
        first one.
    """

    name: str
    options: Mapping[str, Any]
    known_as: str | None


class Tracker(Protocol):
    """A tracker of experiments; any class with these methods and a name is one.

    All methods are called in one thread, which is not that of the steps.  An error of one is
    reported once, and never ends the run; what was to be sent is tried once more, after a while.

    Attributes:
      name: its name in messages, and in the file that says how it knows the run.
    """

    name: str

    def start(self, run: TrackedRun) -> str:
        """Begins a run, or goes on with it; returns by what the tracker knows it."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Takes finite numbers of a step, by name; of several for one step the last counts."""

    def file(self, path: str, kind: str) -> None:
        """Takes a file, or a folder of files.

        Args:
          path: the file on this machine.
          kind: `picture` for PNG and SVG files, or `model`.
        """

    def end(self, how: str) -> None:
        """Ends this process's part of the run.

        Args:
          how: `finished`, `stopped` by a signal, or `failed`.
        """
