"""What a second core brings to the pipelines that read files, and what clones hold in memory.

    python -m benchmarks.inputs_cores [--rounds=5]

Each contender is a process that may use some of the processors only, as `taskset` would have it.
PyTorch's `DataLoader` does the same to the same images with Pillow, in a process for each core.
"""

import contextlib
import functools
import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from benchmarks import torch_images_peer, torch_peer
from benchmarks.child import Requests, measure_in_new_process, start_child, use_cores
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, first, run_command
from benchmarks.inputs_files import RATE, make_photographs, our_batches, start_pipeline
from model_deploy import inputs

tf1 = tf.compat.v1
MODULE = "benchmarks.inputs_cores"
ONE, TWO = "this project, 1 core", "this project, 2 cores"
TORCH_ONE, TORCH_TWO = "PyTorch DataLoader, 1 core", "PyTorch DataLoader, 2 cores"
ONE_CLONE, EIGHT_CLONES = "1 clone", "8 clones"
PEAK = "peak MB"
BATCH_SIZE = 32


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """Two families of preprocessing on one core and two, and the memory of clones."""
    tf1.disable_eager_execution()
    for family in ("inception", "vgg"):
        torch = (TORCH_ONE, TORCH_TWO) if family == "inception" else ()
        yield Benchmark(
            title=f"Photographs on one core and two, {family}",
            does=f"Batches of 32 JPEGs of 500 x 375 with the preprocessing of {family}, at 224.",
            quantities=(RATE,),
            reference=ONE,
            start=functools.partial(_cores, settings, family),
            goals=(Goal(RATE, TWO, ONE, 1.8), *first(RATE, TWO, torch)),
        )
    yield Benchmark(
        title="Memory of an input pipeline",
        does="The most memory that a process takes with batches of 32 at 224 for each clone.",
        quantities=(PEAK,),
        reference=ONE_CLONE,
        start=functools.partial(_memory, settings),
        goals=(Goal(PEAK, EIGHT_CLONES, ONE_CLONE, 1.3, at_most=True),),
    )


def _cores(
    settings: Settings, family: str, stack: contextlib.ExitStack
) -> Mapping[str, Measure | Absent]:
    names = {1: (ONE, TORCH_ONE), 2: (TWO, TORCH_TWO)}
    if len(os.sched_getaffinity(0)) < max(names):
        return dict.fromkeys((ONE, TWO), Absent("needs 2 processors"))
    folder, secs = _photographs(settings, stack), 0.2 if settings.quick else 3.0
    found: dict[str, Measure | Absent] = {}
    for cores, (ours, torch) in names.items():
        arguments: dict[str, Any] = {"cores": cores, "secs": secs, "num_clones": 1}
        arguments |= {"folder": str(folder / "records"), "family": family}
        found[ours] = start_child(stack, MODULE, "serve", **arguments)
        if family == "inception":
            found[torch] = torch_peer.ABSENT
            if torch_peer.is_installed():
                arguments = {"cores": cores, "secs": secs, "folder": str(folder / "folder")}
                found[torch] = start_child(stack, torch_images_peer.MODULE, "serve", **arguments)
    return found


def _memory(settings: Settings, stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    arguments = {"folder": str(_photographs(settings, stack) / "records"), "family": "inception"}

    def peak(num_clones: int) -> dict[str, float]:
        return measure_in_new_process(
            MODULE,
            "serve",
            cores=len(os.sched_getaffinity(0)),
            secs=0.2 if settings.quick else 10.0,
            num_clones=num_clones,
            **arguments,
        )

    return {
        ONE_CLONE: functools.partial(peak, 1),
        EIGHT_CLONES: functools.partial(peak, 8),
    }


def _photographs(settings: Settings, stack: contextlib.ExitStack) -> pathlib.Path:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    make_photographs(folder / "folder", settings.amount(1500, 300))
    images = inputs.get_dataset("folder", "train", folder / "folder", test_percent=0)
    inputs.convert_dataset(images, folder / "records", num_shards=2, progress=False)
    return folder


def serve(
    requests: Requests, *, cores: int, secs: float, num_clones: int, folder: str, family: str
) -> None:
    """A process that measures images per second, and per second of the processors."""
    use_cores(cores)
    tf1.disable_eager_execution()
    dataset = inputs.get_dataset("tfrecord", "train", folder)
    options = {"batch_size": BATCH_SIZE, "image_size": 224, "preprocessing": family}
    with contextlib.ExitStack() as stack:
        requests.serve(
            start_pipeline(
                stack,
                lambda: our_batches(dataset, num_clones=num_clones, **options),
                num_clones * BATCH_SIZE,
                secs,
            )
        )


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
