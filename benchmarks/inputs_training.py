"""Rate of training cifarnet with this project's input, as a share of that on a constant batch.

    python -m benchmarks.inputs_training [--data_dir=<CIFAR-10>] [--rounds=7]

Goal: at least 97%, that is, the input never starves the step.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from benchmarks import images, networks
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.sizes import BATCH_SIZE

tf1 = tf.compat.v1
QUANTITIES = ("images/s", "% of time waiting")
CONSTANT, PIPELINE = "one constant batch", "input pipeline"
WARM_UP = 5


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """The pipeline and the constant batch."""
    tf1.disable_eager_execution()
    steps = settings.amount(60)
    channels = images.get_dataset(settings.data_dir).image_shape[-1]

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        def contender(build: Callable[[], tuple[Any, Any]]) -> Measure:
            run = _start_training(stack, build)
            return lambda: _measure(run, steps)

        return {
            CONSTANT: contender(lambda: _on_constant(channels)),
            PIPELINE: contender(lambda: _with_input(settings.data_dir)),
        }

    yield Benchmark(
        title="Input pipeline in training",
        does=(
            f"cifarnet on {'CIFAR-10' if settings.data_dir else 'digits'}, batches of "
            f"{BATCH_SIZE}, one clone, in a bare loop: whether the step waits for its data."
        ),
        quantities=QUANTITIES,
        reference=CONSTANT,
        start=start,
        goals=(Goal("images/s", PIPELINE, CONSTANT, 0.97),),
    )


def _on_constant(channels: int) -> tuple[Any, Any]:
    return networks.cifarnet_on_constant(channels).train_op, tf.zeros([], tf.float64)


def _with_input(data_dir: str | None) -> tuple[Any, Any]:
    batches = networks.cifarnet_batches(1, data_dir)
    return networks.cifarnet_on(batches, 1).train_op, batches.wait_secs


def _start_training(
    stack: contextlib.ExitStack, build: Callable[[], tuple[Any, Any]]
) -> Callable[[], float]:
    """A function that makes one step of training and returns the seconds of waiting in it."""
    with tf.Graph().as_default():
        fetches = build()
        # Not its context, which would be the default session of all that follows.
        session = tf1.Session()
        stack.callback(session.close)
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        session.run(tf1.tables_initializer())
        run = session.make_callable(fetches)
    return lambda: float(run()[1])


def _measure(run: Callable[[], float], num_steps: int) -> dict[str, float]:
    for _ in range(WARM_UP):
        run()
    start = time.perf_counter()
    waited = sum(run() for _ in range(num_steps))
    secs = time.perf_counter() - start
    numbers = (num_steps * BATCH_SIZE / secs, 100 * waited / secs)
    return dict(zip(QUANTITIES, numbers, strict=True))


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
