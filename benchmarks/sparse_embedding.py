"""Cost of a second clone with a [1000000, 64] embedding table (256 MB), and of the peers'.

    python -m benchmarks.sparse_embedding [--rounds=5]

Trains the same global batch on one clone and on two, each in a process of its own: milliseconds
per step and peak memory.  Goal: both ratios at most 1.2.  A gradient made dense would cost
256 MB and its writing in each step.  Keras and PyTorch train the same on two clones.
"""

import contextlib
import functools
import statistics
import time
from collections.abc import Iterable, Mapping

from benchmarks import torch_peer
from benchmarks.child import Requests, measure_in_new_process, start_child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.sizes import ROWS, SENTENCES, WIDTH, WORDS

QUANTITIES = ("milliseconds", "megabytes")
GOAL = 1.2


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One clone and two; the peers with two."""
    steps = settings.amount(300, quick=10)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        work = {"network": "embedding", "num_clones": 2, "steps": settings.amount(50)}
        keras = start_child(stack, "benchmarks.keras_peer", "serve", **work)
        return {
            **{_name(n): functools.partial(measure_in_process, n, steps) for n in (1, 2)},
            "Keras fit, two clones": _as_quantities(keras),
            "PyTorch DDP, first of two processes": _as_quantities(torch_peer.start(stack, **work)),
        }

    yield Benchmark(
        title="Sparse gradients",
        does=(
            f"An embedding of {ROWS:,} x {WIDTH} (256 MB) and {SENTENCES * WORDS:,} words per "
            "step on one clone, and the same words on two."
        ),
        quantities=QUANTITIES,
        reference=_name(1),
        start=start,
        goals=tuple(Goal(each, _name(2), _name(1), GOAL, at_most=True) for each in QUANTITIES),
    )


def _as_quantities(measure: Measure | Absent) -> Measure | Absent:
    """Of a peer's "steps/s" and "peak MB"."""
    if isinstance(measure, Absent):
        return measure

    def measure_quantities() -> dict[str, float]:
        measured = measure()
        return {"milliseconds": 1000 / measured["steps/s"], "megabytes": measured["peak MB"]}

    return measure_quantities


def _name(num_clones: int) -> str:
    return "one clone" if num_clones == 1 else "two clones"


def measure_in_process(num_clones: int, steps: int) -> dict[str, float]:
    """Trains in a new process, so that peak memory is that of this measurement.

    Returns:
      "milliseconds" per step (median) and "megabytes", the peak.
    """
    measured = measure_in_new_process(
        "benchmarks.sparse_embedding", "serve", num_clones=num_clones, steps=steps
    )
    return {"milliseconds": measured["milliseconds"], "megabytes": measured["peak MB"]}


def serve(requests: Requests, num_clones: int, steps: int) -> None:
    """The process of `measure_in_process`."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - the parent process needs none

    from model_deploy import DeploymentConfig, deploy  # noqa: PLC0415

    def model_fn() -> None:
        table = tf.get_variable("table", [ROWS, WIDTH], initializer=tf.zeros_initializer())
        words = tf.random_uniform([SENTENCES // num_clones, WORDS], 0, ROWS, tf.int64)
        tf.losses.mean_squared_error(
            tf.ones([SENTENCES // num_clones, WORDS, WIDTH]),
            tf.nn.embedding_lookup(table, words),
        )

    def measure() -> dict[str, float]:
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
        return {"milliseconds": 1000 * statistics.median(seconds)}

    with tf.Graph().as_default(), tf.Session() as session:
        config = DeploymentConfig(num_clones=num_clones, clone_on_cpu=True)
        model = deploy(config, model_fn, optimizer=tf.train.GradientDescentOptimizer(0.1))
        session.run(tf.global_variables_initializer())
        step = session.make_callable(model.train_op)
        requests.serve(measure)


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
