"""Local steps over slow links: steps per second beside all-reduce.

    python -m benchmarks.local_steps [--rounds=3]

As root on Linux, with `ip` and `tc`; elsewhere it says what is missing.
"""

import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence

from benchmarks import namespaces
from benchmarks.child import Child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.wire import start_in_network, traffic_of_round

STEPS, BYTES = "steps/s of each worker", "MB sent per worker and step"
NUM_WORKERS, MEGABITS, LOCAL_STEPS = 4, 100, 20
COMPUTATION_SECS = 0.02
_AT_ONCE = f"{LOCAL_STEPS} local steps"
_BESIDE = f"{LOCAL_STEPS} local steps, exchanged beside them"
# Of each contender: what its deployment has beside all-reduce.
CONTENDERS: dict[str, dict[str, object]] = {
    "all-reduce": {},
    _AT_ONCE: {"local_steps": LOCAL_STEPS},
    _BESIDE: {"local_steps": LOCAL_STEPS, "outer_parts": 2, "outer_overlap": LOCAL_STEPS - 1},
}


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """All-reduce, local steps, and local steps whose exchange hides."""
    megabytes = settings.amount(8, quick=1)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        reason = namespaces.missing()
        if reason is not None:
            return dict.fromkeys(CONTENDERS, Absent(reason))
        hosts = stack.enter_context(namespaces.slow_network(NUM_WORKERS, MEGABITS))
        found: dict[str, Measure | Absent] = {}
        for i, (name, asked) in enumerate(CONTENDERS.items()):
            workers = start_in_network(stack, hosts, i, megabytes=megabytes, asked=asked)
            # A round has whole intervals, so that each has its exchanges.
            steps = 2 * LOCAL_STEPS if asked else settings.amount(4)
            found[name] = functools.partial(_measure, workers, hosts, steps)
        return found

    seconds = 2 * (NUM_WORKERS - 1) / NUM_WORKERS * megabytes * 8 / MEGABITS
    yield Benchmark(
        title="Slow links: local steps",
        does=(
            f"{NUM_WORKERS} workers, each with a link of {MEGABITS} Mbit/s, {megabytes} MB of "
            f"float32 variables, whose exchange takes the links {seconds:.2f} s, and "
            f"{COMPUTATION_SECS * 1000:g} ms of computation in each step."
        ),
        quantities=(STEPS, BYTES),
        reference="all-reduce",
        start=start,
        goals=(Goal(STEPS, _AT_ONCE, "all-reduce", 10), Goal(STEPS, _BESIDE, "all-reduce", 10)),
    )


def _measure(
    workers: Sequence[Child], hosts: Sequence[namespaces.Host], steps: int
) -> dict[str, float]:
    seconds, sent = traffic_of_round(workers, hosts, steps, COMPUTATION_SECS)
    return {STEPS: steps / seconds, BYTES: sent}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
