"""`tracking`: all trackers of a run, from its first line to its pictures and its end."""

import contextlib
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from model_deploy import file_systems
from model_deploy.commands import read_checked, tell, write_checked
from model_deploy.runs import read_run_options
from model_deploy.trackers.naming import tracker_named
from model_deploy.trackers.sending import Sending
from model_deploy.trackers.tracker import TrackedRun, Tracker

_FILE = "trackers.json"
_PICTURES = (".png", ".svg")
# Seconds to send what is left. Signals often come shortly before the end of a machine; and where a
# session fails, others wait for the next one.
_END_SECS = {"finished": 60.0, "stopped": 10.0, "failed": 5.0}


class Tracking:
    """Hands on what is written to `metrics.jsonl`, and files, to some trackers.

    Args:
      train_dir: the folder of the run; its file `trackers.json` has by what trackers know the run.
      trackers: the trackers, or their names.
      options: settings of the run, where its folder has no `options.yaml`.
      is_new: whether the run begins anew, also for trackers that know an earlier one.
    """

    def __init__(
        self,
        train_dir: str,
        trackers: Sequence[Tracker | str],
        options: Mapping[str, Any],
        *,
        is_new: bool = False,
    ) -> None:
        self._train_dir = train_dir
        self._known = {} if is_new else _known(train_dir)
        options = read_run_options(train_dir) or options
        name = os.path.basename(os.path.abspath(train_dir)) or "run"
        self._sendings = []
        for tracker in [tracker_named(t) if isinstance(t, str) else t for t in trackers]:
            run = TrackedRun(name, options, self._known.get(tracker.name))
            self._sendings.append(Sending(tracker, run, self._noting(tracker.name)))

    def add(self, values: Mapping[str, Any]) -> None:
        """Hands on a line of `metrics.jsonl`: its finite numbers, but for the step."""
        step = values.get("step")
        found = {
            name: value
            for name, value in values.items()
            if name != "step" and isinstance(value, int | float) and math.isfinite(value)
        }
        if step is not None and found:
            for each in self._sendings:
                each.log(step, found)

    def file(self, path: str, kind: str) -> None:
        """Hands on a file or folder; arguments as for `Tracker.file`."""
        for each in self._sendings:
            each.file(path, kind)

    def end(self, how: str) -> None:
        """Hands on the pictures in the folder of the run, and ends it; waits for what is sent.

        Args:
          how: as for `Tracker.end`, which also says for how long.
        """
        if not self._sendings:
            return
        with tempfile.TemporaryDirectory() as copies:
            for path in self._pictures(copies):
                self.file(path, "picture")
            for each in self._sendings:
                each.end(how, _END_SECS[how])

    def _pictures(self, copies: str) -> Iterator[str]:
        """Yields paths of pictures on this machine: those of the run, or else copies of them."""
        for name in sorted(file_systems.names_in(self._train_dir)):
            path = os.path.join(self._train_dir, name)
            if not name.endswith(_PICTURES):
                continue
            if not file_systems.is_local(path):
                copy = os.path.join(copies, name)
                with open(copy, "wb") as file:
                    file.write(file_systems.read_bytes(path))
                path = copy
            yield path

    def _noting(self, name: str) -> Any:
        """Returns a function that notes in the folder by what a tracker knows the run."""

        def note(known_as: str) -> None:
            if self._known.get(name) != known_as:
                self._known[name] = known_as
                write_checked(os.path.join(self._train_dir, _FILE), self._known)

        return note


@contextlib.contextmanager
def tracking(
    train_dir: str,
    trackers: Sequence[Tracker | str],
    options: Mapping[str, Any],
    *,
    is_new: bool = False,
) -> Iterator[Tracking]:
    """Opens trackers for a `with` block that trains, and tells them how it has ended.

    Args:
      train_dir: the folder of the run.
      trackers: the trackers, or their names.
      options: settings of the run, where its folder has no `options.yaml`.
      is_new: whether the run begins anew.

    Raises:
      ValueError: for a name that is no tracker's, or whose package is missing.
    """
    opened = Tracking(train_dir, trackers, options, is_new=is_new)
    how = "failed"
    try:
        yield opened
        how = "finished"
    except (SystemExit, KeyboardInterrupt):
        how = "stopped"
        raise
    finally:
        opened.end(how)


def send_model(train_dir: str, trackers: Sequence[Tracker | str], path: str) -> None:
    """Sends an exported model to the trackers that know a run.

    Args:
      train_dir: the folder of the run.
      trackers: the trackers, or their names.
      path: a file or folder.

    Raises:
      ValueError: as `tracking`.
    """
    with tracking(train_dir, trackers, {}) as opened:
        opened.file(path, "model")


def _known(train_dir: str) -> dict[str, str]:
    path = os.path.join(train_dir, _FILE)
    if not file_systems.is_file(path):
        return {}
    try:
        return dict(read_checked(path))
    except ValueError as error:
        tell(f"{error}: trackers begin a new run")
        return {}
