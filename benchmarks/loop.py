"""Steps per second of training loops on a tiny network, and of our loop on cifarnet.

    python -m benchmarks.loop [--rounds=5]

Around one and the same graph: `model_deploy.train`, `slim.learning.train`,
`MonitoredTrainingSession`, all with their logging, summaries and checkpoints at default intervals,
and a bare loop over `Session.make_callable`.  The same network in Keras `fit`
under `MirroredStrategy`, with 1 and with 20 steps per execution, and in PyTorch with
`DistributedDataParallel`, one process per clone.
"""

import contextlib
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from benchmarks import images, loops, networks, torch_peer
from benchmarks.child import start_child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command

tf1 = tf.compat.v1
UNIT = "steps/s"
GRAPH_LOOPS = ("train", "slim.learning.train", "MonitoredTrainingSession", "bare loop")
KERAS, KERAS_20, TORCH = "Keras fit", "Keras fit, 20 steps per execution", "PyTorch DDP"


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """The tiny network with 1 and 2 clones, and cifarnet on a constant batch."""
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    for num_clones in (1, 2):
        yield _tiny(settings, num_clones)
    yield _cifarnet(settings)


def graph_loop(loop: str, build: Any, steps: int, warm_up: int) -> Measure:
    """The measure of a loop of graph mode, in this process."""
    return lambda: {UNIT: loops.steps_per_sec(loop, build, steps, warm_up)}


def _tiny(settings: Settings, num_clones: int) -> Benchmark:
    # Other peers are warm from the rounds before; these loops begin anew in each.
    steps, warm_up = settings.amount(2000, quick=40), settings.amount(200, quick=20)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        build = functools.partial(networks.tiny, num_clones)
        keras = functools.partial(
            start_child, stack, "benchmarks.keras_peer", "serve", network="tiny"
        )
        return {
            **{loop: graph_loop(loop, build, steps, warm_up) for loop in GRAPH_LOOPS},
            KERAS: keras(num_clones=num_clones, steps=steps),
            KERAS_20: keras(num_clones=num_clones, steps=steps, steps_per_execution=20),
            TORCH: torch_peer.start(stack, num_clones, network="tiny", steps=steps),
        }

    limits = (
        ("slim.learning.train", 3),
        ("MonitoredTrainingSession", 2),
        ("bare loop", 0.8),
        (KERAS, 8),
        (KERAS_20, 8),
        (TORCH, 8),
    )
    return Benchmark(
        title=f"Tiny network, {num_clones} clone{'s' if num_clones > 1 else ''}",
        does=(
            "One layer on 8 x 10 numbers per clone, without input: what a step costs besides its "
            "computation. The bare loop calls what `Session.make_callable` gives. PyTorch has "
            "one process per clone."
        ),
        quantities=(UNIT,),
        reference="train",
        start=start,
        goals=tuple(Goal(UNIT, "train", other, bound) for other, bound in limits),
    )


def _cifarnet(settings: Settings) -> Benchmark:
    steps, warm_up = settings.amount(40), settings.amount(10)
    channels = images.get_dataset(settings.data_dir).image_shape[-1]
    build = functools.partial(networks.cifarnet_on_constant, channels)

    def start(_: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        return {loop: graph_loop(loop, build, steps, warm_up) for loop in GRAPH_LOOPS}

    return Benchmark(
        title="Loops around cifarnet on a constant batch",
        does="128 images per step, one clone: what the loops cost when a step computes something.",
        quantities=(UNIT,),
        reference="train",
        start=start,
        goals=(Goal(UNIT, "train", "bare loop", 0.97),),
    )


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
