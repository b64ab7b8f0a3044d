"""Accuracy in 16 bits and in 32, over seeds.

    python -m benchmarks.precision_accuracy [--rounds=3] [--data_dir=<CIFAR-10>]

Each round is a seed, with which each network is trained in each precision by the commands that
users have.  The accuracy in 16 bits is to lie within the spread of that in 32.
"""

import contextlib
import functools
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping

from benchmarks.frame import Absent, Benchmark, Measure, Settings, run_command
from model_deploy.settings import PRECISIONS

_ROOT = pathlib.Path(__file__).parents[1]
# A rate that ends at 0: accuracies jump less from one evaluation to the next.
_CLASSIFIER = (
    *("-m", "train_image_classifier", "--clone_on_cpu", "--num_clones=2", "--optimizer=momentum"),
    *("--learning_rate_decay_type=cosine", "--end_learning_rate=0"),
)


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """lenet, cifarnet and the text classifier, each in every precision."""
    images = ["--dataset_name=digits"]
    if settings.data_dir is not None:
        images = ["--dataset_name=cifar10", f"--dataset_dir={settings.data_dir}"]
    steps = settings.amount(1500)
    commands = {
        "lenet on digits": [
            *(*_CLASSIFIER, "--model_name=lenet", "--batch_size=16"),
            f"--max_number_of_steps={settings.amount(600)}",
        ],
        f"cifarnet on {images[0].partition('=')[2]}": [
            *(*_CLASSIFIER, *images, "--model_name=cifarnet", "--batch_size=32"),
            f"--max_number_of_steps={steps}",
        ],
        "text_lstm on sentences": [
            str(_ROOT / "examples" / "text_classifier.py"),
            f"--max_steps={settings.amount(300)}",
        ],
    }
    for name, command in commands.items():
        yield Benchmark(
            title=f"Accuracy in 16 bits: {name}",
            does="Test accuracy of two clones; each round is another seed, the same for all rows.",
            quantities=("accuracy",),
            reference="float32",
            start=functools.partial(_contenders, command),
        )


def _contenders(command: list[str], stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    return {
        precision: functools.partial(_accuracy, command, precision, itertools.count(1))
        for precision in PRECISIONS
    }


def _accuracy(command: list[str], precision: str, seeds: Iterator[int]) -> dict[str, float]:
    """Trains once, with the next seed; what the command prints last is its accuracy."""
    with tempfile.TemporaryDirectory() as folder:
        flags = [f"--train_dir={folder}/run", f"--precision={precision}", f"--seed={next(seeds)}"]
        ended = subprocess.run(
            [sys.executable, *command, *flags],
            check=False,
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # where progress goes
            text=True,
        )
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)} ended:\n{ended.stdout[-2000:]}")
    [*_, found] = re.findall(r"accuracy at step \d+: ([0-9.]+)", ended.stdout)
    return {"accuracy": float(found)}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
