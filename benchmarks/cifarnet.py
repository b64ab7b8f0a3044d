"""Images per second of training cifarnet with real input, on 1, 2 and 4 clones.

    python -m benchmarks.cifarnet [--data_dir=<CIFAR-10>] [--rounds=5]

A step is one batch of 128 images, whatever the number of clones, which divide it.  All augment
their images as the original cifarnet does.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from benchmarks import images, loops, networks, torch_peer
from benchmarks.child import start_child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, first, run_command
from benchmarks.sizes import BATCH_SIZE

tf1 = tf.compat.v1
UNIT = "images/s"
CLONES = (1, 2, 4)
LIMIT = "bare loop on a constant batch"
GOAL_OF_LIMIT = 0.97
# 4 clones cost at most 1.03 times one clone with the whole batch.
GOAL_OF_ONE_CLONE = 1 / 1.03


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """All numbers of clones in one table, so that they can be compared."""
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    peers = ("towers", "Keras", "PyTorch")
    yield Benchmark(
        title="cifarnet with real input",
        does=(
            f"{'CIFAR-10' if settings.data_dir else 'digits'}, 128 images per step, which the "
            "clones divide. `train` has this project's input; the towers (written by hand, a loop "
            "over `Session.run`) and Keras (`MirroredStrategy` over logical CPUs) have the usual "
            "one of `tf.data`, image by image in parallel; PyTorch (`DistributedDataParallel`, "
            "one process per clone) augments whole batches. A step on one clone with a "
            "batch that costs nothing to read is the limit."
        ),
        quantities=(UNIT,),
        reference=LIMIT,
        start=functools.partial(_start, settings),
        goals=(
            *(
                goal
                for n in CLONES
                for goal in first(UNIT, _name("train", n), [_name(peer, n) for peer in peers])
            ),
            *(Goal(UNIT, _name("train", n), LIMIT, GOAL_OF_LIMIT) for n in CLONES),
            Goal(UNIT, _name("train", 4), _name("train", 1), round(GOAL_OF_ONE_CLONE, 3)),
        ),
    )


def _name(contender: str, num_clones: int) -> str:
    return f"{contender}, {num_clones}"


def _start(settings: Settings, stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    steps, warm_up, data_dir = settings.amount(60), settings.amount(10), settings.data_dir
    channels = images.get_dataset(data_dir).image_shape[-1]

    def loop(name: str, build: Callable[[], Any]) -> Measure:
        return lambda: {UNIT: BATCH_SIZE * loops.steps_per_sec(name, build, steps, warm_up)}

    contenders: dict[str, Measure | Absent] = {
        LIMIT: loop("bare loop", functools.partial(networks.cifarnet_on_constant, channels))
    }
    peer = {"network": "cifarnet", "steps": steps, "data_dir": data_dir}
    for n in CLONES:
        ours = functools.partial(networks.cifarnet, n, data_dir)
        towers = functools.partial(networks.cifarnet_towers, n, data_dir)
        keras = start_child(stack, "benchmarks.keras_peer", "serve", num_clones=n, **peer)
        contenders |= {
            _name("train", n): loop("train", ours),
            _name("towers", n): loop("towers", towers),
            _name("Keras", n): _in_images(keras),
            _name("PyTorch", n): _in_images(torch_peer.start(stack, n, **peer)),
        }
    return contenders


def _in_images(measure: Measure | Absent) -> Measure | Absent:
    if isinstance(measure, Absent):
        return measure
    return lambda: {UNIT: BATCH_SIZE * measure()["steps/s"]}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
