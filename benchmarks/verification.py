"""What a step costs that is made twice, beside a step that is made once.

    python -m benchmarks.verification [--rounds=5] [--data_dir=<CIFAR-10>]

With `verify_every_n_steps=N` one of N steps is of the second kind, so that all steps take
1 + (ratio - 1) / N times as long: 1/N for the second making, and (ratio - 2) / N beyond.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from benchmarks import networks
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from model_deploy.verification import Verification

tf1 = tf.compat.v1
ONCE, OFF, TWICE = "made once", "made once, without the option", "made twice"
MS, CPU = "ms", "CPU ms"


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """cifarnet with its inputs, one clone and two, and the tiny network."""
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    data_dir = settings.data_dir
    for num_clones in (1, 2):
        number = f"{num_clones} clone{'s' if num_clones > 1 else ''}"
        yield _steps(
            settings, f"cifarnet, {number}", lambda n=num_clones: networks.cifarnet(n, data_dir), 10
        )
    yield _steps(settings, "the tiny network", lambda: networks.tiny(1), 200)


def _steps(settings: Settings, what: str, build: Callable[[], Any], steps: int) -> Benchmark:
    steps = settings.amount(steps)

    def begin(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        off, _ = _ways(stack, build, verifies=False)
        once, twice = _ways(stack, build, verifies=True)
        return {
            name: _measure(step, steps) for name, step in ((ONCE, once), (OFF, off), (TWICE, twice))
        }

    return Benchmark(
        title=f"Steps that are made twice: {what}",
        does=(
            "A step made once, in a graph that can make it twice and in one that cannot, and one "
            "made twice and compared. With every N-th step made twice, (ratio - 2) / N is the "
            "cost beyond 1/N: at a ratio of 2.1 and N = 10 it is 1%."
        ),
        quantities=(MS, CPU),
        reference=ONCE,
        start=begin,
        goals=(Goal(CPU, TWICE, ONCE, 2.1, at_most=True), Goal(CPU, ONCE, OFF, 1.01, at_most=True)),
    )


def _ways(
    stack: contextlib.ExitStack, build: Callable[[], Any], *, verifies: bool
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Returns, in a new graph and session, what makes a step once, and what makes it twice."""
    with tf.Graph().as_default():
        model = build()
        report = model.train_op
        verification = Verification(model, report, [1]) if verifies else None
        session = stack.enter_context(tf1.Session())
        for op in (tf1.global_variables_initializer(), tf1.local_variables_initializer()):
            session.run(op)
        session.run(tf1.tables_initializer())
    once = session.make_callable(report)
    if verification is None:
        return once, once
    return once, lambda: verification.make(session, 1, {"report": report}, {})


def _measure(step: Callable[[], Any], steps: int) -> Measure:
    def measure() -> Mapping[str, float]:
        step()
        began, cpu = time.perf_counter(), time.process_time()
        for _ in range(steps):
            step()
        wall, used = time.perf_counter() - began, time.process_time() - cpu
        return {MS: 1000 * wall / steps, CPU: 1000 * used / steps}

    return measure


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
