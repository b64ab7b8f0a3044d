"""Accuracy on CIFAR-10 over minutes: this project on two clones, and Keras' `fit`.

    python -m benchmarks.cifar10_accuracy --data_dir=<CIFAR-10> [--rounds=3]

Each round is a seed.  The network of `examples/keras_cifar10.py` is trained in bfloat16 by that
example and by Keras, with as many steps, the same batches, rates and augmentation; and ResNet-9 by
the recipe.  Minutes count from the start of the process, evaluations included.  The
curves are drawn into `cifar10_accuracy.png` in the folder that the command is run in.
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

PICTURE = pathlib.Path("cifar10_accuracy.png")
# Pairs of minutes and accuracy.
Curve = list[tuple[float, float]]
_ROOT = pathlib.Path(__file__).parents[1]
_EXAMPLE = "keras_cifar10.py, this project"
_FIT = "keras_cifar10.py, Keras' fit"
_RECIPE = "recipes/cifar10.yaml"
_GOAL = 0.9


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
        return {name: Absent("needs --data_dir") for name in (_EXAMPLE, _FIT, _RECIPE)}
    data = [] if settings.data_dir is None else [f"--data_dir={settings.data_dir}"]
    short = ["--max_steps=2", "--eval_every_n_steps=1"] if settings.quick else []
    often = short or ["--eval_every_n_steps=391"]
    images = ["--dataset_name=digits"]
    if settings.data_dir is not None:
        images = [f"--dataset_dir={settings.data_dir}"]
    steps = ["--max_number_of_steps=2"] if settings.quick else []
    commands = {
        _EXAMPLE: ["examples/keras_cifar10.py", *data, "--precision=bfloat16", *often],
        _FIT: ["-m", "benchmarks.cifar10_fit", *data, *often],
        _RECIPE: [
            *("-m", "train_image_classifier", "--config=recipes/cifar10.yaml", *images),
            *(steps or ["--eval_every_n_steps=391"]),
        ],
    }
    curves: dict[str, list[Curve]] = {name: [] for name in commands}
    return {
        name: functools.partial(_measure, command, curves[name], curves, itertools.count(1))
        for name, command in commands.items()
    }


def _measure(
    command: Sequence[str],
    own: list[Curve],
    curves: Mapping[str, list[Curve]],
    seeds: Iterator[int],
) -> dict[str, float]:
    """Trains once, with the next seed, and draws all curves so far."""
    own.append(_train([*command, f"--seed={next(seeds)}"]))
    _draw(curves)
    minutes, accuracy = own[-1][-1]
    return {"accuracy": accuracy, "minutes": minutes}


def _train(command: Sequence[str]) -> Curve:
    """Runs a program of Python that prints what it finds, and notes when it does."""
    curve: Curve = []
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
            found = re.search(r"evaluation at step \d+:.* accuracy ([0-9.]+)", line)
            if found:
                curve.append(((time.monotonic() - began) / 60, float(found[1])))
        if process.wait() or not curve:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return curve


def _draw(curves: Mapping[str, list[Curve]]) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - half a second, in the parent alone

    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axis = figure.subplots()
    for number, (name, runs) in enumerate(curves.items()):
        for run, curve in enumerate(runs):
            minutes, accuracies = zip(*curve, strict=True)
            label = None if run else name
            axis.plot(minutes, accuracies, f"C{number}", marker=".", linewidth=1, label=label)
    axis.axhline(_GOAL, color="grey", linewidth=0.8, linestyle="--")
    axis.set_xlabel("minutes since the start of the process")
    axis.set_ylabel("test accuracy (share of images)")
    axis.grid(visible=True, alpha=0.3)
    axis.legend()
    figure.savefig(PICTURE, format="png", dpi=110)


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
