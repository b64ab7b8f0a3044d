"""Training over slow links: workers in network namespaces, each link limited.

    python -m benchmarks.slow_network [--rounds=5]

As root on Linux, with `ip` and `tc`; elsewhere it says what is missing.
"""

import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence

from benchmarks import namespaces
from benchmarks.child import Child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.traffic import received_bytes
from benchmarks.wire import PRECISIONS, seconds_of_round, start_workers

SECONDS, BYTES = "seconds per step", "MB sent per worker and step"
NUM_WORKERS, MEGABITS = 4, 400
FIRST_PORT = 2222


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """All-reduce with each wire precision."""
    steps, megabytes = settings.amount(5), settings.amount(40, quick=4)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        reason = namespaces.missing()
        if reason is not None:
            return dict.fromkeys(PRECISIONS, Absent(reason))
        hosts = stack.enter_context(namespaces.slow_network(NUM_WORKERS, MEGABITS))
        contenders: dict[str, Measure | Absent] = {}
        for i, precision in enumerate(PRECISIONS):
            workers = start_workers(
                stack,
                [f"{host.address}:{FIRST_PORT + i}" for host in hosts],
                [],
                [host.within for host in hosts],
                way="all_reduce",
                wire_precision=precision,
                megabytes=megabytes,
                steps=steps,
            )
            interfaces = [host.interface for host in hosts]
            contenders[precision] = functools.partial(_measure, workers, interfaces, steps)
        return contenders

    # Each process sends and receives 2 (n - 1) / n of the bytes.
    limit = 2 * (NUM_WORKERS - 1) / NUM_WORKERS * megabytes * 8 / MEGABITS
    yield Benchmark(
        title="Slow links: all-reduce",
        does=(
            f"{NUM_WORKERS} workers, each with a link of {MEGABITS} Mbit/s, {megabytes} MB of "
            f"float32 gradients. With 32 bits the links alone take {limit:.2f} s a step, with 16 "
            f"{limit / 2:.2f} s."
        ),
        quantities=(SECONDS, BYTES),
        reference="float32",
        start=start,
        goals=(
            Goal(SECONDS, "bfloat16", "float32", 0.55, at_most=True),
            Goal(BYTES, "bfloat16", "float32", 0.52, at_most=True),
        ),
    )


def _measure(workers: Sequence[Child], interfaces: Sequence[str], steps: int) -> dict[str, float]:
    before = sum(map(received_bytes, interfaces))
    seconds = seconds_of_round(workers)
    moved = sum(map(received_bytes, interfaces)) - before
    return {SECONDS: seconds / steps, BYTES: moved / (steps * len(workers)) / 1e6}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
