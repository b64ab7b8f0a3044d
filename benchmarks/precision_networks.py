"""Images per second in float32 and in bfloat16, for every architecture of `nets`.

    python -m benchmarks.precision_networks [--rounds=3]

`python -m benchmarks.precision` has four of them, beside PyTorch and Keras.  Deeper and wider
variants of the same layers are left out.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Mapping

from benchmarks import precision
from benchmarks.classifiers import UNIT, Work
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command

# Image size and batch size.
NETWORKS = {
    "pnasnet_mobile": (224, 8),
    "nasnet_cifar": (32, 16),
    "nasnet_mobile": (224, 8),
    "lenet": (28, 64),
    "resnet_9": (32, 64),
    "alexnet_v2": (224, 16),
    "overfeat": (231, 4),
    "vgg_a": (224, 4),
    "inception_v1": (224, 8),
    "inception_v2": (224, 8),
    "inception_v4": (224, 4),
    "inception_resnet_v2": (224, 4),
    "resnet_v2_50": (160, 8),
    "mobilenet_v1_025": (224, 16),
    "mobilenet_v2": (224, 16),
    "mobilenet_v2_035": (224, 16),
    "mobilenet_v3_small": (224, 16),
    "mobilenet_v3_large": (224, 16),
    "mobilenet_v3_small_minimalistic": (224, 16),
    "mobilenet_v3_large_minimalistic": (224, 16),
    "mobilenet_edgetpu": (224, 16),
}
# By how much 16 bits may be slower: 3%.
LEAST = 0.97


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """A table for each network; for just one to see that it runs."""
    for network in ("lenet",) if settings.quick else NETWORKS:
        image_size, batch_size = NETWORKS[network]
        yield Benchmark(
            title=f"{network} in 16 bits",
            does=(
                f"{batch_size} constant images of {image_size} x {image_size} per step, one clone "
                "on the CPU."
            ),
            quantities=(UNIT,),
            reference="float32",
            start=functools.partial(_start, settings, network),
            goals=(Goal(UNIT, "bfloat16", "float32", LEAST),),
        )


def _start(
    settings: Settings, network: str, stack: contextlib.ExitStack
) -> Mapping[str, Measure | Absent]:
    image_size, batch_size = NETWORKS[network]
    work = Work(
        network,
        "float32",
        image_size=image_size,
        batch_size=settings.amount(batch_size),
        secs=settings.amount(precision.SECS, quick=0),
    )
    return {
        each: precision.start(stack, precision.OURS, dataclasses.replace(work, precision=each))
        for each in precision.PRECISIONS
    }


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
