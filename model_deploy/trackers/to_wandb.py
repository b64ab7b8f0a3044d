"""`WeightsAndBiases`: runs of Weights & Biases, online or in a folder, by the package `wandb`."""

import os
from collections.abc import Mapping
from typing import Any

from model_deploy.trackers.tracker import TrackedRun

_EXIT_CODES = {"finished": 0, "stopped": 0, "failed": 1}


class WeightsAndBiases:
    """Sends a run to Weights & Biases.

    The variables of the package choose where: `WANDB_MODE=offline` writes into `WANDB_DIR`, for
    `wandb sync`; `WANDB_PROJECT` and `WANDB_API_KEY` are for the service.

    Args:
      **settings: further arguments of `wandb.init`, such as `project` and `tags`.
    """

    name = "wandb"

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._run: Any = None

    def start(self, run: TrackedRun) -> str:
        """Makes a run, or goes on with the earlier one."""
        import wandb  # noqa: PLC0415 - it takes a second, in the tracker's thread

        quiet = wandb.Settings(silent=True, console="off")
        given = {"name": run.name, "config": dict(run.options), "settings": quiet}
        earlier = {} if run.known_as is None else {"id": run.known_as, "resume": "allow"}
        self._run = wandb.init(**(given | earlier | self._settings))
        # A run that goes on may repeat steps, which the package's own count of steps refuses.
        self._run.define_metric("*", step_metric="step")
        return str(self._run.id)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Sends a row of the history."""
        self._run.log({**values, "step": step})

    def file(self, path: str, kind: str) -> None:
        """Sends a picture as media, where it is PNG; all else as an artifact."""
        import wandb  # noqa: PLC0415

        name = os.path.basename(path)
        if kind == "picture" and name.endswith(".png"):
            self._run.log({name.removesuffix(".png"): wandb.Image(path)})
            return
        artifact = wandb.Artifact(f"{self._run.id}-{name}", type=kind)
        (artifact.add_dir if os.path.isdir(path) else artifact.add_file)(path)
        self._run.log_artifact(artifact)

    def end(self, how: str) -> None:
        """Ends the run; the package sends what is left."""
        self._run.finish(exit_code=_EXIT_CODES[how])
