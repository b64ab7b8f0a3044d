"""Rotated steps beside plain ones, where computation takes as long as the transfer.

By all-reduce, and by synchronous replicas on parameter servers.

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
from benchmarks.wire import seconds_of_round, start_in_network

SECONDS = "seconds per step"
LIMIT = "computation, or transfer"
# Workers, parameter servers, and the rate in Mbit/s of each one's link.
CASES = ((2, 0, 2000), (4, 0, 400), (8, 0, 200), (2, 1, 2000), (4, 2, 400), (8, 4, 400))
MEGABYTES = 40
# A rotated step takes at most so many times the limit, by all-reduce and on servers.
MOST_BY_RING, MOST_ON_SERVERS = 1.15, 1.10


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One for each cluster."""
    for case in CASES:
        yield _benchmark(settings, *case)


def _benchmark(settings: Settings, num_workers: int, num_ps: int, megabits: int) -> Benchmark:
    # At the end of a round the rest of its last step is done, too: rounds are long.
    steps, megabytes = settings.amount(15), settings.amount(MEGABYTES, quick=4)
    ways = {"plain": "synchronous" if num_ps else "all_reduce", "rotated": "rotated"}
    limit = Group(ways["plain"], num_workers, num_ps, megabytes).transfer_secs(megabits)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        reason = namespaces.missing()
        if reason is not None:
            return dict.fromkeys([LIMIT, *ways], Absent(reason))
        hosts = stack.enter_context(namespaces.slow_network(num_workers + num_ps, megabits))
        contenders: dict[str, Measure | Absent] = {LIMIT: lambda: {SECONDS: limit}}
        for i, (name, way) in enumerate(ways.items()):
            workers = start_in_network(
                stack,
                hosts,
                i,
                way=way,
                num_ps=num_ps,
                megabytes=megabytes,
                layers=LAYERS,
                partitioned=num_ps > 0,
            )
            seconds_of_round(workers, 1, limit)  # connections adapt to the rate
            contenders[name] = functools.partial(_measure, workers, steps, limit)
        return contenders

    most = MOST_ON_SERVERS if num_ps else MOST_BY_RING
    servers = f", {num_ps} parameter servers" if num_ps else ""
    return Benchmark(
        title=f"Rotated steps: {num_workers} workers{servers}, {megabits} Mbit/s",
        does=(
            f"{megabytes} MB in {LAYERS} layers, which compute as long as the links alone take, "
            f"with servers one direction after the other: {limit:.2f} s. A round has {steps} "
            "steps, by all-reduce also the rest of the last one."
        ),
        quantities=(SECONDS,),
        reference=LIMIT,
        start=start,
        goals=(Goal(SECONDS, "rotated", LIMIT, most, at_most=True),),
    )


def _measure(workers: Sequence[Child], steps: int, limit: float) -> dict[str, float]:
    return {SECONDS: max(seconds_of_round(workers, steps, limit)) / steps}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
