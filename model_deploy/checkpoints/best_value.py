"""The best value of a run so far, noted beside the best checkpoint and in its manifest."""

import os

from model_deploy.checkpoints.aside import set_aside
from model_deploy.checkpoints.damage import manifest_of, quick_damage
from model_deploy.checkpoints.good import listing_of, say_once
from model_deploy.commands import read_checked

BEST_FILE = "best.json"


def best_value(folder: str, metric: str) -> float | None:
    """Returns the best value of a metric in earlier sessions of a run; None without any.

    If the best checkpoint is damaged, that is set aside, and there is no best value.  If the file
    is damaged or missing, the manifest of the checkpoint has the value.

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
    manifest = None if best is None else manifest_of(best)
    of_manifest = None if manifest is None else manifest.facts.get(metric)
    path = os.path.join(folder, BEST_FILE)
    try:
        return read_checked(path).get(metric)
    except FileNotFoundError:
        if of_manifest is not None:
            say_once(f"{path} is missing: the manifest of {best} has the best {metric}")
        return of_manifest
    except ValueError as error:
        if of_manifest is None:
            raise ValueError(f"{error}; without it the next evaluation is the best") from error
        say_once(f"{error}: the manifest of {best} has the best {metric}")
        return of_manifest
