"""Seconds that commands take for their help and for refusals, against `import tensorflow`.

    python -m benchmarks.start_of_commands [--rounds=5]

Each is a new process in each round, from its start to its end.
"""

import contextlib
import functools
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping

from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command

QUANTITY = "seconds"
REFERENCE = "import tensorflow"
COMMANDS = (
    "train_image_classifier --help",
    "train_image_classifier --helpfull",
    "train_image_classifier --learning_rate=-1",
    "train_image_classifier --model_name=no_such",
    "eval_image_classifier --help",
    "export_image_classifier --help",
    "nets --help",
    "nets --name=no_such",
    "model_deploy.plan --help",
    "model_deploy.checkpoints --help",
    "model_deploy.tf1 --help",
    "model_deploy.launch --help",
    "model_deploy.runs --help",
)


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One table: help and refusals of commands."""
    commands = COMMANDS[:3] if settings.quick else COMMANDS
    yield Benchmark(
        title="Help and refusals of commands",
        does="New processes, from their start to their end; `import tensorflow` is one of them.",
        quantities=(QUANTITY,),
        reference=REFERENCE,
        start=functools.partial(_start, commands),
        goals=tuple(Goal(QUANTITY, each, REFERENCE, 0.25, at_most=True) for each in commands),
    )


def _start(commands: Iterable[str], _: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    return {
        REFERENCE: functools.partial(_seconds, "-c", REFERENCE),
        **{each: functools.partial(_seconds, "-m", *each.split()) for each in commands},
    }


def _seconds(*arguments: str) -> dict[str, float]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ},
        check=False,
    )
    seconds = time.perf_counter() - began
    if done.returncode not in (0, 2):
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}")
    return {QUANTITY: seconds}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
