"""Images per second of training in float32 and in bfloat16, on a constant batch.

    python -m benchmarks.precision [--rounds=3]

resnet_v1_50, inception_v3 (without its auxiliary head) and mobilenet_v1 at 160 pixels, and
cifarnet, on one clone on the CPU: `deploy` with each precision and a loop over its train op,
PyTorch without and with autocast, and Keras under each policy.  Each contender has a process of
its own, as many threads as there are cores, and SGD without weight decay.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Mapping

from benchmarks import torch_peer
from benchmarks.child import start_child
from benchmarks.classifiers import UNIT, Work
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, first, run_command

PRECISIONS = ("float32", "bfloat16")
OURS, TORCH, KERAS = "deploy", "PyTorch", "Keras"
MODULES = {
    OURS: "benchmarks.deployed_classifiers",
    TORCH: "benchmarks.torch_classifiers",
    KERAS: "benchmarks.keras_classifiers",
}
# Image size and batch size.
NETWORKS = {
    "resnet_v1_50": (160, 8),
    "inception_v3": (160, 8),
    "mobilenet_v1": (160, 16),
    "cifarnet": (32, 64),
}
# inception_v3 takes no smaller images.
QUICK_IMAGE_SIZE = 75
# Seconds of a measurement.
SECS = 4
DIFFERENCES = {
    "resnet_v1_50": (
        " Keras's ResNet50 halves the image at the first convolutions of its blocks, not at the "
        "last units, and its convolutions have biases."
    ),
    "inception_v3": " Without the auxiliary head; Keras's has no dropout either.",
}


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """A table for each network."""
    for network in NETWORKS:
        yield _benchmark(settings, network)


def works(settings: Settings, network: str) -> list[Work]:
    """What each library trains, in each precision."""
    image_size, batch_size = NETWORKS[network]
    return [
        Work(
            network,
            precision,
            image_size=min(image_size, settings.amount(image_size, quick=QUICK_IMAGE_SIZE)),
            batch_size=settings.amount(batch_size),
            secs=settings.amount(SECS, quick=0),
        )
        for precision in PRECISIONS
    ]


def _benchmark(settings: Settings, network: str) -> Benchmark:
    trained = works(settings, network)
    size = trained[0].image_size
    goals = [
        goal
        for each in PRECISIONS
        for goal in first(UNIT, _name(OURS, each), [_name(TORCH, each), _name(KERAS, each)])
    ]
    if network == "resnet_v1_50":
        ours = _name(OURS, "bfloat16")
        goals.append(Goal(UNIT, ours, _name(OURS, "float32"), 1.5))
        goals.append(Goal(UNIT, ours, _name(TORCH, "bfloat16"), 1.2))
    return Benchmark(
        title=f"{network} in float32 and bfloat16",
        does=(
            f"{trained[0].batch_size} constant images of {size} x {size} per step, one clone on "
            "the CPU: `deploy` with each `precision` and a loop over its train op; PyTorch in "
            "`channels_last`, without and with `autocast`; Keras under `float32` and "
            "`mixed_bfloat16`, without XLA, by `train_on_batch`."
            f"{DIFFERENCES.get(network, '')}"
        ),
        quantities=(UNIT,),
        reference=_name(OURS, "float32"),
        start=functools.partial(_start, trained),
        goals=tuple(goals),
    )


def _name(library: str, precision: str) -> str:
    return f"{library}, {precision}"


def _start(works_: list[Work], stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    return {
        _name(library, work.precision): start(stack, library, work)
        for work in works_
        for library in MODULES
    }


def start(stack: contextlib.ExitStack, library: str, work: Work) -> Measure | Absent:
    """The measure of a process that the stack closes; or why there is none."""
    if library == TORCH and not torch_peer.is_installed():
        return torch_peer.ABSENT
    return start_child(stack, MODULES[library], "serve", **dataclasses.asdict(work))


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
