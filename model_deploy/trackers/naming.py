"""Trackers by the names that options give them; a missing package is said at once."""

import importlib
from collections.abc import Sequence

from model_deploy.checks import check_installed
from model_deploy.trackers.tracker import Tracker

# The module and class of each tracker; the name is also that of its package, and of the extra.
_TRACKERS = {
    "mlflow": ("model_deploy.trackers.to_mlflow", "MLflow"),
    "wandb": ("model_deploy.trackers.to_wandb", "WeightsAndBiases"),
    "aim": ("model_deploy.trackers.to_aim", "Aim"),
}
NAMES = tuple(_TRACKERS)


def check_names(text: str) -> Sequence[str]:
    """Returns the names in a list such as `mlflow,wandb`, whose packages are there.

    Raises:
      ValueError: for a name that is no tracker's, or is there twice; with the command of `pip`, for
        a package that is not installed.
    """
    names = text.split(",")
    for name in names:
        if name not in _TRACKERS:
            raise ValueError(f"tracker must be of {', '.join(NAMES)}, got {text!r}")
        if names.count(name) > 1:
            raise ValueError(f"tracker must name each tracker once, got {text!r}")
        check_installed(f"tracker {name}", name, name)
    return names


def tracker_named(name: str) -> Tracker:
    """Returns a tracker by its name.

    Raises:
      ValueError: as `check_names`.
    """
    [name] = check_names(name)
    module, kind = _TRACKERS[name]
    made: Tracker = getattr(importlib.import_module(module), kind)()
    return made
