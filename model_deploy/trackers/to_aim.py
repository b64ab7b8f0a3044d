"""`Aim`: runs in a repository of Aim, in a folder or on a server, by the package `aim`."""

import os
from collections.abc import Mapping
from typing import Any

from model_deploy.trackers.tracker import TrackedRun


class Aim:
    """Sends a run to Aim.

    Args:
      repo: the repository, a folder or `aim://` and an address; by default `AIM_REPO`, else the
        present folder.
      experiment: name of the experiment; by default `AIM_EXPERIMENT`, else Aim's default.
    """

    name = "aim"

    def __init__(self, repo: str | None = None, experiment: str | None = None) -> None:
        self._repo = repo or os.environ.get("AIM_REPO") or "."
        self._experiment = experiment or os.environ.get("AIM_EXPERIMENT")
        self._run: Any = None

    def start(self, run: TrackedRun) -> str:
        """Makes a run, or goes on with the earlier one."""
        import aim  # noqa: PLC0415 - it takes seconds, in the tracker's thread

        self._run = aim.Run(
            run_hash=run.known_as,
            repo=self._repo,
            experiment=self._experiment,
            system_tracking_interval=None,
            log_system_params=False,
            capture_terminal_logs=False,
        )
        self._run.name = run.name
        for name, value in run.options.items():
            self._run["options", name] = value
        return str(self._run.hash)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Sends metrics."""
        for name, value in values.items():
            self._run.track(float(value), name=name, step=step)

    def file(self, path: str, kind: str) -> None:
        """Sends PNG pictures as images; of other files Aim keeps the path."""
        import aim  # noqa: PLC0415

        name = os.path.basename(path)
        if kind == "picture" and name.endswith(".png"):
            self._run.track(aim.Image(path), name=name.removesuffix(".png"))
        else:
            self._run[f"{kind}s", name] = os.path.abspath(path)

    def end(self, how: str) -> None:
        """Closes the run."""
        self._run["end"] = how
        self._run.close()
