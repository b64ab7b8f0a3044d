"""Accuracy on CIFAR-10 over minutes: this project on two clones, and Keras' `fit`.

    python -m benchmarks.cifar10_accuracy --data_dir=<CIFAR-10> [--rounds=3]

Each round is a seed.  The network of `examples/keras_cifar10.py` is trained in bfloat16 by that
example and by Keras, which gets as many minutes: with the same batches, rates and augmentation, and
as many steps as it makes in them.  The recipe trains ResNet-9.  Minutes count from the start of the
process (for Keras from the end of the trial that finds the number of steps), evaluations included.

A run takes up to half an hour, so what was measured is kept in `benchmarks/data`, with date and
machine: a run that is there is not made again.  All are drawn into docs/images.
"""

import contextlib
import functools
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.kept import read_rows, stamped, write_rows

_ROOT = pathlib.Path(__file__).parents[1]
DATA = _ROOT / "benchmarks" / "data" / "cifar10_accuracy.json"
PICTURE = _ROOT / "docs" / "images" / "cifar10_accuracy.png"
# Pairs of minutes and accuracy.
Curve = list[tuple[float, float]]
_EXAMPLE = "keras_cifar10.py, this project"
_FIT = "keras_cifar10.py, Keras' fit"
_RECIPE = "recipes/cifar10.yaml"
_CONTENDERS = (_EXAMPLE, _FIT, _RECIPE)
_GOAL = 0.9
# Of two steps, in a quick run.
_QUICK_MINUTES = 0.01


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One table; its quantities are those at the end."""
    yield Benchmark(
        title="CIFAR-10: accuracy over minutes",
        does="Test accuracy and minutes at the end, on two clones in bfloat16; a round is a seed.",
        quantities=("accuracy", "minutes"),
        reference=_FIT,
        start=functools.partial(_start, settings),
        goals=(Goal("accuracy", _EXAMPLE, _FIT, 1),),
    )


def _start(settings: Settings, stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    if settings.data_dir is None and not settings.quick:
        return dict.fromkeys(_CONTENDERS, Absent("needs --data_dir"))
    runs = _Runs(settings)
    return {name: functools.partial(runs.measure, name, itertools.count(1)) for name in _CONTENDERS}


class _Runs:
    """What was measured, by contender and seed; in a quick run nothing is kept."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._curves = {} if settings.quick else read()

    def measure(self, name: str, seeds: Iterator[int]) -> dict[str, float]:
        """The end of the run with the next seed, which is made if there is none yet."""
        seed = next(seeds)
        if (name, seed) not in self._curves:
            self._curves[name, seed] = _train([*self._command(name, seed), f"--seed={seed}"])
            if not self._settings.quick:
                write(name, seed, self._curves[name, seed])
                draw(self._curves)
        minutes, accuracy = self._curves[name, seed][-1]
        return {"accuracy": accuracy, "minutes": minutes}

    def _command(self, name: str, seed: int) -> list[str]:
        quick, data_dir = self._settings.quick, self._settings.data_dir
        data = [] if data_dir is None else [f"--data_dir={data_dir}"]
        often = f"--eval_every_n_steps={1 if quick else 782}"  # four epochs
        if name == _RECIPE:
            images = "--dataset_name=digits" if data_dir is None else f"--dataset_dir={data_dir}"
            short = ["--max_number_of_steps=2"] if quick else []
            recipe = ["-m", "train_image_classifier", "--config=recipes/cifar10.yaml"]
            return [*recipe, images, often, *short]
        if name == _EXAMPLE:
            short = ["--max_steps=2"] if quick else []
            return ["examples/keras_cifar10.py", *data, "--precision=bfloat16", often, *short]
        minutes = _QUICK_MINUTES if quick else self._curves[_EXAMPLE, seed][-1][0]
        return ["-m", "benchmarks.cifar10_fit", *data, often, f"--minutes={minutes:.2f}"]


def read(path: pathlib.Path = DATA) -> dict[tuple[str, int], Curve]:
    """What was measured, by contender and seed."""
    return {
        (row["contender"], row["seed"]): [(minutes, share) for minutes, share in row["curve"]]
        for row in read_rows(path)
    }


def write(name: str, seed: int, curve: Curve, path: pathlib.Path = DATA) -> None:
    """Adds a run to the file."""
    curve = [(round(minutes, 2), accuracy) for minutes, accuracy in curve]
    row = stamped({"contender": name, "seed": seed, "curve": curve})
    write_rows([*read_rows(path), row], path)


def _train(command: Sequence[str]) -> Curve:
    """Runs a program of Python that prints what it finds, and notes when it does."""
    curve: Curve = []
    line = ""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-u", *command, f"--train_dir={folder}/run"],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # where progress goes
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if re.match(r"\d+ steps in ", line):  # the trial of `fit` does not count
                began = time.monotonic()
            found = re.search(r"evaluation at step \d+:.* accuracy ([0-9.]+)", line)
            if found:
                curve.append(((time.monotonic() - began) / 60, float(found[1])))
        if process.wait() or not curve:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {line}")
    return curve


def draw(curves: Mapping[tuple[str, int], Curve], path: pathlib.Path = PICTURE) -> None:
    """Draws accuracy over minutes, a line for each run."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - half a second, in the parent alone

    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axis = figure.subplots()
    labels = set()
    for (name, _), curve in curves.items():
        minutes, accuracies = zip(*curve, strict=True)
        label = None if name in labels else name
        labels.add(name)
        color = f"C{_CONTENDERS.index(name)}"
        axis.plot(minutes, accuracies, color, marker=".", linewidth=1, label=label)
    axis.axhline(_GOAL, color="grey", linewidth=0.8, linestyle="--")
    axis.set_xlabel("minutes since the start of the process")
    axis.set_ylabel("test accuracy (share of images)")
    axis.grid(visible=True, alpha=0.3)
    axis.legend()
    figure.savefig(path, format="png", dpi=110)


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
