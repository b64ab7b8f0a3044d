"""Rotated steps beside plain ones by all-reduce, where computation takes as long as the transfer.

    python -m benchmarks.rotated_steps [--rounds=5]

As root on Linux, with `ip` and `tc`; elsewhere it says what is missing.
"""

import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence

from benchmarks import namespaces
from benchmarks.child import Child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.network_grid import LAYERS, Group
from benchmarks.wire import seconds_of_round, start_ring

SECONDS = "seconds per step"
LIMIT = "computation, or transfer"
WAYS = {"plain": "all_reduce", "rotated": "rotated"}
# Workers, and the rate in Mbit/s of each one's link.
CASES = ((2, 2000), (4, 400), (8, 200))
MEGABYTES = 40


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One for each number of workers."""
    for workers, megabits in CASES:
        yield _benchmark(settings, workers, megabits)


def _benchmark(settings: Settings, num_workers: int, megabits: int) -> Benchmark:
    # At the end of a round the rest of its last step is done, too: rounds are long.
    steps, megabytes = settings.amount(15), settings.amount(MEGABYTES, quick=4)
    limit = Group("all_reduce", num_workers, 0, megabytes).transfer_secs(megabits)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        reason = namespaces.missing()
        if reason is not None:
            return dict.fromkeys([LIMIT, *WAYS], Absent(reason))
        hosts = stack.enter_context(namespaces.slow_network(num_workers, megabits))
        contenders: dict[str, Measure | Absent] = {LIMIT: lambda: {SECONDS: limit}}
        for i, (name, way) in enumerate(WAYS.items()):
            workers = start_ring(stack, hosts, i, way=way, megabytes=megabytes, layers=LAYERS)
            seconds_of_round(workers, 1, limit)  # connections adapt to the rate
            contenders[name] = functools.partial(_measure, workers, steps, limit)
        return contenders

    return Benchmark(
        title=f"Rotated steps: {num_workers} workers, {megabits} Mbit/s",
        does=(
            f"All-reduce of {megabytes} MB in {LAYERS} layers, which compute as long as the links "
            f"alone take: {limit:.2f} s. A round has {steps} steps, and the rest of the last one."
        ),
        quantities=(SECONDS,),
        reference=LIMIT,
        start=start,
        goals=(Goal(SECONDS, "rotated", LIMIT, 1.15, at_most=True),),
    )


def _measure(workers: Sequence[Child], steps: int, limit: float) -> dict[str, float]:
    return {SECONDS: max(seconds_of_round(workers, steps, limit)) / steps}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
