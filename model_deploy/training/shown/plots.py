"""`training.png`: loss, learning rate, throughput and accuracy of a run over its steps."""

import contextlib
import gc
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from model_deploy.checkpoints import OneAtATime, Storage
from model_deploy.commands import replaced_file, without_font_notices
from model_deploy.runs import Run, read_metrics, read_run

PLOT_FILE = "training.png"
# Seconds between two drawings during a run, or more, so that drawings take this share of them at
# most: inputs in Python wait for them.
_EVERY_SECS = 60.0
_SHARE = 0.01
# (label of the axis, curves as key in metrics.jsonl and name in the legend)
_PANELS = (
    (
        "loss (nats, if cross entropy)",
        (("loss", "training, with regularization"), ("log_loss", "held out")),
    ),
    ("learning rate (per step)", (("learning_rate", ""),)),
    ("throughput ({unit}/s)", (("images_per_sec", ""),)),
    (
        "accuracy (share of {unit})",
        (("train_accuracy", "training"), ("accuracy", "held out")),
    ),
)
# Inches; the height is that of a panel.
_WIDTH, _HEIGHT = 7.0, 2.2
_KEYS = [key for _, curves in _PANELS for key, _ in curves]
_Points = Sequence[tuple[int, float]]


def plot_training(train_dir: str | os.PathLike[str], unit: str = "images") -> str | None:
    """Draws `training.png` from `metrics.jsonl`, both in `train_dir`; replaces it as a whole.

    Args:
      train_dir: the folder.
      unit: name of the examples, for the labels of the axes.

    Returns:
      The path; None if there is nothing to draw yet.
    """
    with _collecting():
        return _draw(os.fspath(train_dir), unit)


@contextlib.contextmanager
def _collecting() -> Iterator[None]:
    """Collects the garbage that is made within, and that alone.

    A figure refers to itself, and has megabytes of pixels, of which Python's collector knows
    nothing: among TensorFlow's objects it looks for old garbage once in hours.  Without collections
    meanwhile all of the figure is young garbage, which takes no time to collect.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
        for generation in (0, 1):  # part of it is garbage only when the rest is gone
            gc.collect(generation)


@without_font_notices()
def _draw(train_dir: str, unit: str) -> str | None:
    """Draws the picture, see `plot_training`."""
    try:
        run = read_run(train_dir, _KEYS)
    except ValueError:  # somebody edits options.yaml, of which only the title is made
        run = Run(train_dir, metrics=read_metrics(train_dir, _KEYS))
    panels = panels_of(run)
    if not panels:
        return None
    # Imported here, as it takes half a second; not pyplot, which would keep state and windows.
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(_WIDTH, _HEIGHT * len(panels)))
    figure.suptitle(describe_run(run), fontsize=9, y=1 - 0.1 / figure.get_figheight(), va="top")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    _set_margins(figure)
    for axis, (label, curves) in zip(axes, panels, strict=True):
        axis.set_ylabel(label.format(unit=unit), fontsize=8)
        axis.grid(visible=True, alpha=0.3)
        _draw_curves(axis, curves)
        if label.startswith("loss") and lowest(curves) > 0:
            axis.set_yscale("log")
        if label.startswith("accuracy"):
            axis.set_ylim(min(0.9, lowest(curves, but_first=0.1)), 1.0)
    axes[-1].set_xlabel("step (updates of the variables)")
    path = os.path.join(train_dir, PLOT_FILE)
    with replaced_file(path, "wb") as file:
        figure.savefig(file, format="png", dpi=110)
    return path


def _set_margins(figure: Any) -> None:
    """Leaves room for the labels: to measure them takes half as long as to draw the figure."""
    width, height = figure.get_size_inches()
    figure.subplots_adjust(
        left=0.95 / width,
        right=1 - 0.15 / width,
        bottom=0.5 / height,
        top=1 - 0.35 / height,
        hspace=0.1,
    )


def describe_run(run: Run) -> str:
    """Returns the title of a picture: network and dataset, or the folder; the newest accuracy."""
    names = [run.options.get(each) for each in ("model_name", "dataset_name")]
    title = " on ".join(str(name) for name in names if name) or run.folder
    return title if run.accuracy is None else f"{title}, accuracy {run.accuracy:.4f}"


def panels_of(run: Run) -> list[tuple[str, list[tuple[str, _Points]]]]:
    """Returns label and curves of each panel; a curve has its name in the legend, and points."""
    return [(label, curves) for label, keys in _PANELS if (curves := _curves(run, keys))]


def _curves(run: Run, keys: Sequence[tuple[str, str]]) -> list[tuple[str, _Points]]:
    """Returns the points of each curve that the run has, by its name in the legend."""
    found = [(name, _of_whole_intervals(key, run.points(key))) for key, name in keys]
    return [(name, points) for name, points in found if points]


def _of_whole_intervals(key: str, points: _Points) -> _Points:
    """Leaves out the last rate of a run that ended between two logs: the end takes time, too."""
    steps = [step for step, _ in points[-3:]]
    is_rate = key == "images_per_sec" and len(steps) == 3
    is_cut = is_rate and steps[2] - steps[1] < steps[1] - steps[0]
    return points[:-1] if is_cut else points


def lowest(curves: Sequence[tuple[str, _Points]], but_first: float = 0.0) -> float:
    """Returns the lowest value of curves, without those of the first share of the steps."""
    begin = but_first * max(points[-1][0] for _, points in curves)
    return min(value for _, points in curves for step, value in points if step >= begin)


def _draw_curves(axis: Any, curves: Sequence[tuple[str, _Points]]) -> None:
    """Draws curves, with a legend if they have names."""
    for name, points in curves:
        steps, values = zip(*points, strict=True)
        axis.plot(steps, values, marker="o" if len(points) < 20 else None, markersize=3, label=name)
    if any(name for name, _ in curves):
        axis.legend(fontsize=7)


class TrainingPlot:
    """Draws `training.png` now and then, in a thread, and at the end of a run.

    Args:
      train_dir: the folder.
      unit: name of the examples, for the labels of the axes.
      storage: the run's, told if the picture cannot be written.
    """

    def __init__(self, train_dir: str, unit: str, storage: Storage) -> None:
        self._train_dir, self._unit, self._storage = train_dir, unit, storage
        self._next = time.monotonic() + _EVERY_SECS
        self._thread = OneAtATime(same_thread=True)

    def draw_now_and_then(self) -> None:
        """Begins to draw, if it is time to."""
        if not self._thread.is_running and time.monotonic() >= self._next:
            self._thread.wait()
            self._thread.start(PLOT_FILE, self._draw)

    def close(self) -> None:
        """Draws the picture of the whole run."""
        self._thread.wait()
        self._draw()

    def _draw(self) -> None:
        start = time.monotonic()
        with self._storage.trying(PLOT_FILE):
            plot_training(self._train_dir, self._unit)
        end = time.monotonic()
        self._next = end + max(_EVERY_SECS, (end - start) / _SHARE)
