"""Compares runs in text: their results, and the options in which they differ."""

from collections.abc import Sequence
from typing import Any

from model_deploy.commands import aligned
from model_deploy.runs.reading import Run

# Options that differ between any two runs.
_NOT_COMPARED = ("train_dir",)
_NONE = "-"


def differing_options(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Returns the options that differ between runs.

    An option that a run did not save (in an older version, say) is None.

    >>> small, large = Run("a", {"seed": 0, "rate": 0.1}), Run("b", {"seed": 0, "rate": 0.2})
    >>> differing_options([small, large])
    {'rate': [0.1, 0.2]}

    Args:
      runs: the runs.

    Returns:
      By name the values, one per run; None for a run without options.
    """
    names = dict.fromkeys(name for run in runs for name in run.options)
    noted = [run for run in runs if run.options]
    return {
        name: [run.options.get(name) for run in runs]
        for name in names
        if name not in _NOT_COMPARED
        and any(run.options.get(name) != noted[0].options.get(name) for run in noted)
    }


def runs_table(runs: Sequence[Run]) -> str:
    """Returns a table with the results of runs, and one with the options in which they differ.

    Args:
      runs: the runs, numbered in both tables.
    """
    rows = [["", "run", "step", "loss", "accuracy", "best", "images/s", "effective"]]
    for number, run in enumerate(runs, 1):
        rows.append(
            [
                str(number),
                run.folder,
                _cell(run.step),
                _cell(run.loss, ".4f"),
                _cell(run.accuracy, ".4f"),
                _cell(run.best_accuracy, ".4f"),
                _cell(run.images_per_sec, ",.0f"),
                _cell(run.effective, ".1%"),
            ]
        )
    text = "\n".join(aligned(rows, left=(1,)))
    differing = differing_options(runs)
    if differing:
        options = [["differs", *(str(number) for number in range(1, len(runs) + 1))]]
        options += [[name, *map(_cell, values)] for name, values in differing.items()]
        text += "\n".join(["", "", *aligned(options)])
    elif len(runs) > 1:
        text += "\n\nno options differ"
    return text


def _cell(value: Any, form: str = "") -> str:
    if value is None:
        return _NONE
    return str(value).lower() if isinstance(value, bool) else format(value, form)
