"""Programs of Horovod beside our own all-reduce: steps per second of four workers.

    python -m benchmarks.horovod [--rounds=5]

Real processes on the loopback and, as root, behind links of 400 Mbit/s.
"""

import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence

from benchmarks import namespaces
from benchmarks.child import Child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.wire import THREADS, seconds_of_round, start_workers
from model_deploy.launch import ReservedPorts

STEPS = "steps/s of each worker"
OURS, HOROVOD = "all-reduce", "hvd.DistributedOptimizer"
PASSES = 4
OF_PASSES = f"backward_passes_per_step={PASSES}"
NUM_WORKERS, MEGABITS, FIRST_PORT = 4, 400, 2222


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """On the loopback, and behind slow links."""
    for is_slow in (False, True):
        yield _benchmark(settings, is_slow)


def _benchmark(settings: Settings, is_slow: bool) -> Benchmark:
    steps = settings.amount(5 if is_slow else 20)
    megabytes = settings.amount(8, quick=1)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        reason = namespaces.missing() if is_slow else None
        if reason is not None:
            return dict.fromkeys((OURS, HOROVOD, OF_PASSES), Absent(reason))
        within: list[Sequence[str]] = [()] * NUM_WORKERS
        if is_slow:
            hosts = stack.enter_context(namespaces.slow_network(NUM_WORKERS, MEGABITS))
            within = [host.within for host in hosts]
        contenders: dict[str, Measure | Absent] = {}
        starts = {
            OURS: _start_ours,
            HOROVOD: _start_horovod,
            OF_PASSES: functools.partial(_start_horovod, passes=PASSES),
        }
        for i, (name, start_all) in enumerate(starts.items()):
            if is_slow:
                addresses = [f"{host.address}:{FIRST_PORT + i}" for host in hosts]
            else:
                addresses = list(stack.enter_context(ReservedPorts(NUM_WORKERS)).addresses)
            workers = start_all(stack, addresses, within, megabytes)
            contenders[name] = functools.partial(_measure, workers, steps)
        return contenders

    where = f"links of {MEGABITS} Mbit/s" if is_slow else "the loopback"
    return Benchmark(
        title=f"Horovod: {where}",
        does=(
            f"{NUM_WORKERS} workers on {where} train the same {megabytes} MB of float32 variables, "
            "by `train` and by a `MonitoredTrainingSession` as programs of Horovod have it; with "
            "several passes for each update a step is one pass."
        ),
        quantities=(STEPS,),
        reference=OURS,
        start=start,
        goals=(Goal(STEPS, HOROVOD, OURS, 0.95),),
    )


def _start_ours(
    stack: contextlib.ExitStack,
    addresses: Sequence[str],
    within: Sequence[Sequence[str]],
    megabytes: float,
) -> list[Child]:
    settings = {"way": "all_reduce", "wire_precision": "float32", "megabytes": megabytes}
    return start_workers(stack, addresses, [], within, **settings)


def _start_horovod(
    stack: contextlib.ExitStack,
    addresses: Sequence[str],
    within: Sequence[Sequence[str]],
    megabytes: float,
    passes: int = 1,
) -> list[Child]:
    workers = [
        stack.enter_context(
            Child(
                "benchmarks.horovod_task",
                "serve_worker",
                within=within[task],
                worker_hosts=list(addresses),
                task_id=task,
                megabytes=megabytes,
                threads=THREADS,
                passes=passes,
            )
        )
        for task in range(NUM_WORKERS)
    ]
    for worker in workers:
        worker.wait_until_ready()
    return workers


def _measure(workers: Sequence[Child], steps: int) -> dict[str, float]:
    return {STEPS: steps / max(seconds_of_round(workers, steps))}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
