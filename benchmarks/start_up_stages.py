"""Seconds from the start of a process to each stage of `train`, against `import tensorflow` alone.

    python -m benchmarks.start_up_stages [--rounds=5]

Each contender is a new process in each round that does what those before it do, and a thing more.
"""

import contextlib
import functools
from collections.abc import Iterable, Mapping

from benchmarks.child import Child
from benchmarks.first_step import FIRST_STEP, IMPORT, STAGES
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command

QUANTITIES = ("seconds", "CPU seconds")


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One table: what a process has reached when."""
    del settings  # there is no amount of work to choose
    yield Benchmark(
        title="Start-up in stages",
        does=(
            "New processes on a model of one variable and one clone: `import tensorflow` alone, as "
            "any program has it; the same behind `import model_deploy`, which leaves Keras and the "
            "like for later; then also what of `model_deploy` a program of `train` imports, the "
            "graph, the session with its first checkpoint, and the first step. CPU seconds are "
            "those of all threads of the process."
        ),
        quantities=QUANTITIES,
        reference=IMPORT,
        start=_start,
        goals=tuple(Goal(each, FIRST_STEP, IMPORT, 1.15, at_most=True) for each in QUANTITIES),
    )


def _start(_: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    return {stage: functools.partial(_seconds_to, stage) for stage in (IMPORT, *STAGES)}


def _seconds_to(stage: str) -> dict[str, float]:
    with Child("benchmarks.first_step", "reach", stage=stage) as child:
        return child.wait_until_ready()


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
