"""Images per second of training a Keras model on 1, 2 and 4 clones, and on a parameter server.

    python -m benchmarks.keras_clones [--data_dir=<CIFAR-10>] [--rounds=5]

The model is a residual network of 7 convolutions, as Keras makes it, by `deploy_model` and by
Keras' `fit` under `MirroredStrategy`.  A step is one batch of 128 images, which the clones divide.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from benchmarks import images, keras_residual, loops, ps_training
from benchmarks.child import start_child
from benchmarks.frame import Absent, Benchmark, Measure, Settings, first, run_command
from benchmarks.sizes import BATCH_SIZE

tf1 = tf.compat.v1
UNIT = "images/s"
CLONES = (1, 2, 4)
PEERS = {"fit": {}, "fit without XLA": {"jit_compile": False}}
CLUSTER = "1 parameter server, 2 workers"


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """On clones, beside Keras; and on a parameter server, where there is nobody else."""
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    data = "CIFAR-10" if settings.data_dir else "digits"
    yield Benchmark(
        title="A Keras model on clones",
        does=(
            f"A residual network on {data}, with the usual input of `tf.data`, "
            "128 images per step, which the clones divide. Keras has `MirroredStrategy` over "
            "logical CPUs; its default is to compile steps with XLA."
        ),
        quantities=(UNIT,),
        reference=_name("deploy_model", 1),
        start=functools.partial(_start, settings),
        goals=tuple(
            goal
            for n in CLONES
            for goal in first(UNIT, _name("deploy_model", n), [_name(peer, n) for peer in PEERS])
        ),
    )
    yield Benchmark(
        title="A Keras model on a parameter server",
        does=(
            "The same network and batches; two workers, processes of this machine, update the "
            "variables of a third one without waiting for each other. Keras 3 has no such way, "
            "and `ParameterServerStrategy` takes no model of Keras 3."
        ),
        quantities=(UNIT,),
        reference=CLUSTER,
        start=functools.partial(_start_cluster, settings),
    )


def _name(contender: str, num_clones: int) -> str:
    return f"{contender}, {num_clones}"


def _start(settings: Settings, stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
    steps, warm_up = settings.amount(30), settings.amount(10)
    channels = images.get_dataset(settings.data_dir).image_shape[-1]

    def ours(num_clones: int) -> Measure:
        build: Callable[[], Any] = functools.partial(
            keras_residual.deploy, num_clones, settings.data_dir, channels
        )
        return lambda: {UNIT: BATCH_SIZE * loops.steps_per_sec("train", build, steps, warm_up)}

    contenders: dict[str, Measure | Absent] = {}
    for n in CLONES:
        contenders[_name("deploy_model", n)] = ours(n)
        for peer, arguments in PEERS.items():
            child = start_child(
                stack,
                "benchmarks.keras_residual",
                "serve",
                num_clones=n,
                steps=steps,
                data_dir=settings.data_dir,
                channels=channels,
                **arguments,
            )
            contenders[_name(peer, n)] = child
    return contenders


def _start_cluster(
    settings: Settings, stack: contextlib.ExitStack
) -> Mapping[str, Measure | Absent]:
    steps = settings.amount(15)
    measure = ps_training.start_cluster(stack, 2, 1, network="keras_residual", steps=steps)
    return {CLUSTER: lambda: {UNIT: BATCH_SIZE * measure()[ps_training.UNIT]}}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
