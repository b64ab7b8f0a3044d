"""`MLflow`: runs on an MLflow server or in a store of files, by the package `mlflow`."""

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from model_deploy.trackers.tracker import TrackedRun

# MLflow takes so many items in one call, and so many characters of a value.
_MOST_ITEMS, _MOST_CHARACTERS = 100, 6000
_STATUS = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}


class MLflow:
    """Sends a run to MLflow.

    Args:
      uri: a server, or `file:` and a folder; by default `MLFLOW_TRACKING_URI`, as MLflow has it.
      experiment: name of the experiment; by default `MLFLOW_EXPERIMENT_NAME`, else `Default`.
    """

    name = "mlflow"

    def __init__(self, uri: str | None = None, experiment: str | None = None) -> None:
        self._uri = uri
        self._experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "Default"
        self._client: Any = None
        self._run_id = ""

    def start(self, run: TrackedRun) -> str:
        """Makes a run, or opens the earlier one again, whose settings stay."""
        # Imported here, in the tracker's thread: it takes seconds.
        from mlflow import MlflowClient  # noqa: PLC0415
        from mlflow.entities import Param  # noqa: PLC0415

        self._client = MlflowClient(self._uri)
        if run.known_as is None:
            experiment = self._client.get_experiment_by_name(self._experiment)
            found = experiment and experiment.experiment_id
            found = found or self._client.create_experiment(self._experiment)
            made = self._client.create_run(found, run_name=run.name)
        else:
            made = self._client.get_run(run.known_as)
            self._client.update_run(run.known_as, status="RUNNING")
        self._run_id = made.info.run_id
        for some in _in_parts([each for each in run.options if each not in made.data.params]):
            given = [Param(each, str(run.options[each])[:_MOST_CHARACTERS]) for each in some]
            self._client.log_batch(self._run_id, params=given)
        return str(self._run_id)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Sends metrics."""
        from mlflow.entities import Metric  # noqa: PLC0415

        now = int(time.time() * 1000)
        for some in _in_parts(list(values)):
            metrics = [Metric(each, float(values[each]), now, step) for each in some]
            self._client.log_batch(self._run_id, metrics=metrics)

    def file(self, path: str, kind: str) -> None:
        """Sends an artifact, into the folder `pictures` or `models`."""
        send = self._client.log_artifacts if os.path.isdir(path) else self._client.log_artifact
        inner = f"/{os.path.basename(path)}" if os.path.isdir(path) else ""
        send(self._run_id, path, f"{kind}s{inner}")

    def end(self, how: str) -> None:
        """Gives the run its status."""
        self._client.set_terminated(self._run_id, _STATUS[how])


def _in_parts(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[i : i + _MOST_ITEMS] for i in range(0, len(names), _MOST_ITEMS)]
