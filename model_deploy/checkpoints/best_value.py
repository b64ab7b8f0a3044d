"""The best value of a run so far, noted beside the best checkpoint and in its manifest."""

import os
from typing import Any

from model_deploy.checkpoints.aside import set_aside
from model_deploy.checkpoints.damage import manifest_of, quick_damage
from model_deploy.checkpoints.good import listing_of, say_once
from model_deploy.commands import read_checked, write_checked

BEST_FILE = "best.json"


def best_value(folder: str, metric: str) -> float | None:
    """Returns the best value of a metric in earlier sessions of a run; None without any.

    If the best checkpoint is damaged, that is set aside, and there is no best value.  Its manifest
    has the value, too, so that the file is written again if it is damaged or missing.

    Args:
      folder: that of the best checkpoint.
      metric: name of the metric.

    Raises:
      ValueError: naming the file, if it is damaged and there is no manifest.
    """
    best = next(iter(listing_of(folder).newest_first), None)
    if best is not None and (damage := quick_damage(best)) is not None:
        set_aside(best)
        say_once(f"{damage}: kept aside as damaged.*, the next evaluation counts as the best")
        return None
    path = os.path.join(folder, BEST_FILE)
    manifest = None if best is None else manifest_of(best)
    if manifest is None or metric not in manifest.facts:
        return _noted(path).get(metric)
    value = manifest.facts[metric]
    expected = {"step": manifest.step, metric: value}
    try:
        noted = _noted(path)
        wrong = "" if noted == expected else f"{path} {f'has {noted}' if noted else 'is missing'}"
    except ValueError as error:
        wrong = str(error)
    if wrong:
        say_once(f"{wrong}: it is written again, with the best {metric} in the manifest of {best}")
        write_checked(path, expected)
    return value


def _noted(path: str) -> dict[str, Any]:
    """Reads the file, {} without it.

    Raises:
      ValueError: naming the file, if it is damaged.
    """
    try:
        return read_checked(path)
    except FileNotFoundError:
        return {}
