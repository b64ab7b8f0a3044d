"""Seconds from the start of the process to the end of the first step, and peak memory.

    python -m benchmarks.start_up [--rounds=5]

Each contender is started anew in each round: it imports what it needs, builds the tiny network
on 2 clones and makes a step.
"""

import contextlib
import functools
from collections.abc import Iterable, Mapping

from benchmarks import torch_peer
from benchmarks.child import Child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command

QUANTITIES = ("seconds", "peak MB")
NUM_CLONES = 2
PEERS = ("slim.learning.train", "MonitoredTrainingSession", "Keras fit", "PyTorch DDP")


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One table for the time and one for the memory."""
    del settings  # there is no amount of work to choose
    yield Benchmark(
        title="Start-up: imports to first step, and memory",
        does=(
            "New processes that train the tiny network on 2 clones for a step, with "
            "`model_deploy` imported before TensorFlow in that of `train` (PyTorch: 2 "
            "processes, whose memory is added up; Keras and PyTorch without checkpoints)."
        ),
        quantities=QUANTITIES,
        reference="train",
        start=_start,
        goals=tuple(Goal("seconds", "train", other, 0.85, at_most=True) for other in PEERS[:3]),
    )


def _start(_: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    loops = ("train", *PEERS[:2])
    return {
        **{loop: functools.partial(_first_step_of_loop, loop) for loop in loops},
        "Keras fit": _first_step_of_keras,
        "PyTorch DDP": (_first_step_of_torch if torch_peer.is_installed() else torch_peer.ABSENT),
    }


def _first_step_of_loop(loop: str) -> dict[str, float]:
    arguments = {"loop": loop, "num_clones": NUM_CLONES}
    with Child("benchmarks.first_step", "serve", **arguments) as child:
        return child.wait_until_ready()


def _first_step_of_keras() -> dict[str, float]:
    arguments = {"network": "tiny", "num_clones": NUM_CLONES, "steps": 1}
    with Child("benchmarks.keras_peer", "serve", **arguments) as child:
        return child.wait_until_ready()


def _first_step_of_torch() -> dict[str, float]:
    with contextlib.ExitStack() as stack:
        children = torch_peer.start_processes(stack, NUM_CLONES, network="tiny", steps=1)
        ready = [child.wait_until_ready() for child in children]
    return {
        "seconds": max(each["seconds"] for each in ready),
        "peak MB": sum(each["peak MB"] for each in ready),
    }


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
