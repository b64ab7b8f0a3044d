"""Draws the curves of several runs in one picture."""

import os
from collections.abc import Sequence
from typing import Any

from model_deploy.commands import replaced_file, without_font_notices
from model_deploy.runs.reading import Run

# (key in metrics.jsonl, label of the axis)
_PANELS = (
    ("loss", "total loss"),
    ("accuracy", "evaluation accuracy"),
    ("images_per_sec", "images/s"),
)
_MOST_COLORS = 10  # colors of matplotlib's cycle; further runs get other dashes
_DASHES = ("-", "--", ":", "-.")


@without_font_notices()
def draw_runs(runs: Sequence[Run], path: str | os.PathLike[str]) -> str:
    """Draws loss, accuracy and rate of all runs over steps; replaces the file as a whole.

    Args:
      runs: the runs; there is no panel for a quantity that no run has.
      path: the file, whose suffix is the format: .svg, .png, .pdf or another of matplotlib's.

    Returns:
      The path.

    Raises:
      ValueError: if matplotlib has no such format, or no run has a number to draw.
      OSError: if the file cannot be written.
    """
    panels = [(key, label) for key, label in _PANELS if any(run.points(key) for run in runs)]
    if not panels:
        raise ValueError(f"runs must have numbers to draw, got none in {len(runs)} run(s)")
    # Imported here, as it takes half a second; not pyplot, which would keep state and windows.
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8.0, 2.4 * len(panels) + 0.3 * len(runs)), layout="constrained")
    form = _format_of(path, figure)
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    lines = {}
    for axis, (key, label) in zip(axes, panels, strict=True):
        for number, run in enumerate(runs):
            points = run.points(key)
            if points:
                lines[run.folder] = _draw(axis, points, number)
        axis.set_ylabel(label)
        axis.grid(visible=True, alpha=0.3)
        if key == "loss" and all(value > 0 for run in runs for _, value in run.points(key)):
            axis.set_yscale("log")
    axes[-1].set_xlabel("step (updates of the variables)")
    figure.legend(lines.values(), lines.keys(), loc="outside upper left", frameon=False)
    # The same runs give the same bytes: no date, no random names.
    metadata = {"Date": None} if form == "svg" else None
    with rc_context({"svg.hashsalt": "runs"}), replaced_file(path, "wb") as file:
        figure.savefig(file, format=form, dpi=110, metadata=metadata)
    return os.fspath(path)


def _draw(axis: Any, points: Sequence[tuple[int, float]], number: int) -> Any:
    """Draws the curve of run `number`; returns its line."""
    steps, values = zip(*points, strict=True)
    [line] = axis.plot(
        steps,
        values,
        color=f"C{number % _MOST_COLORS}",
        linestyle=_DASHES[number // _MOST_COLORS % len(_DASHES)],
        marker="o" if len(points) < 20 else None,
        markersize=3,
    )
    return line


def _format_of(path: str | os.PathLike[str], figure: Any) -> str:
    """Returns the format that the suffix of a path names."""
    ending = os.path.splitext(os.fspath(path))[1].removeprefix(".").lower()
    formats = sorted(figure.canvas.get_supported_filetypes())
    if ending not in formats:
        raise ValueError(f"picture must end in one of .{', .'.join(formats)}, got {path}")
    return ending
