"""Gradients and variables in 16 bits between processes: bytes per step, and steps per second.

    python -m benchmarks.wire [--rounds=5]

Real processes on the loopback, by each way to train that crosses process borders, with
`wire_precision` float32 and bfloat16.  On the loopback, bytes cost little: see
`benchmarks.slow_network` for links that are limited.
"""

import contextlib
import functools
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.child import Child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.namespaces import Host
from benchmarks.traffic import loopback_bytes, received_bytes
from model_deploy.launch import ReservedPorts

STEPS, BYTES = "steps/s of each worker", "MB per worker and step"
PRECISIONS = ("float32", "bfloat16")
WAYS = ("asynchronous", "synchronous", "all_reduce")
NUM_WORKERS, NUM_PS = 2, 1
# Of each process, for ops: what computes may be a pause, and hold one of them.
THREADS = 16
# Of a contender in a network of its own.
_FIRST_PORT = 2222


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One for each way."""
    for way in WAYS:
        yield _benchmark(settings, way)


def _benchmark(settings: Settings, way: str) -> Benchmark:
    steps, megabytes = settings.amount(20), settings.amount(8, quick=1)
    num_ps = 0 if way == "all_reduce" else NUM_PS

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        contenders: dict[str, Measure | Absent] = {}
        for precision in PRECISIONS:
            ports = stack.enter_context(ReservedPorts(NUM_WORKERS + num_ps))
            workers = start_workers(
                stack,
                ports.addresses[:NUM_WORKERS],
                ports.addresses[NUM_WORKERS:],
                way=way,
                wire_precision=precision,
                megabytes=megabytes,
            )
            contenders[precision] = functools.partial(_measure, workers, steps)
        return contenders

    return Benchmark(
        title=f"Wire precision: {way.replace('_', '-')}",
        does=(
            f"{NUM_WORKERS} workers, {num_ps} parameter server(s), {megabytes} MB of float32 "
            "variables; the bytes are those on the loopback."
        ),
        quantities=(BYTES, STEPS),
        reference=PRECISIONS[0],
        start=start,
        goals=(Goal(BYTES, "bfloat16", "float32", 0.52, at_most=True),),
    )


def start_workers(
    stack: contextlib.ExitStack,
    worker_hosts: Sequence[str],
    ps_hosts: Sequence[str],
    within: Sequence[Sequence[str]] = (),
    **arguments: object,
) -> list[Child]:
    """Starts a cluster, and waits for the first steps of its workers.

    Args:
      stack: ends the processes.
      worker_hosts: addresses of the workers.
      ps_hosts: addresses of the parameter servers.
      within: for each worker, then for each parameter server, words before its command.
      **arguments: for `wire_task.serve_worker`.
    """
    within = within or [()] * (len(worker_hosts) + len(ps_hosts))
    hosts = {"worker_hosts": list(worker_hosts), "ps_hosts": list(ps_hosts)}
    # Kept here: at the end the workers are killed.
    folder = stack.enter_context(tempfile.TemporaryDirectory())

    def started(module: str, function: str, place: int, **more: object) -> Child:
        child = Child(module, function, within=within[place], **hosts, **more)
        return stack.enter_context(child)

    servers = [
        started(
            "benchmarks.ps_task",
            "serve_ps",
            len(worker_hosts) + task,
            task_id=task,
            threads=THREADS,
        )
        for task in range(len(ps_hosts))
    ]
    for server in servers:
        server.wait_until_ready()
    workers = [
        started(
            "benchmarks.wire_task",
            "serve_worker",
            task,
            task_id=task,
            train_dir=folder,
            threads=THREADS,
            **arguments,
        )
        for task in range(len(worker_hosts))
    ]
    for worker in workers:
        worker.wait_until_ready()
    return workers


def start_in_network(
    stack: contextlib.ExitStack,
    hosts: Sequence[Host],
    number: int,
    *,
    way: str = "all_reduce",
    wire_precision: str = "float32",
    num_ps: int = 0,
    **arguments: object,
) -> list[Child]:
    """Starts workers, and parameter servers, one on each host of a network.

    Args:
      stack: ends the processes.
      hosts: the hosts.
      number: of the contender, which has a port of its own.
      way: see `wire_task.serve_worker`.
      wire_precision: the same.
      num_ps: how many of the hosts, the last ones, have parameter servers.
      **arguments: further arguments of `wire_task.serve_worker`.
    """
    addresses = [f"{host.address}:{_FIRST_PORT + number}" for host in hosts]
    within = [host.within for host in hosts]
    places = addresses[: len(hosts) - num_ps], addresses[len(hosts) - num_ps :]
    return start_workers(
        stack, *places, within, way=way, wire_precision=wire_precision, **arguments
    )


def traffic_of_round(
    workers: Sequence[Child], hosts: Sequence[Host], steps: int, computation_secs: float = 0.0
) -> tuple[float, float]:
    """A round of steps on hosts of a network: its seconds, and MB sent per worker and step."""
    interfaces = [host.interface for host in hosts]
    before = sum(map(received_bytes, interfaces))
    seconds = max(seconds_of_round(workers, steps, computation_secs))
    moved = sum(map(received_bytes, interfaces)) - before
    return seconds, moved / (steps * len(workers)) / 1e6


def seconds_of_round(
    workers: Sequence[Child], steps: int, computation_secs: float = 0.0
) -> list[float]:
    """A round of steps by all workers at once: how long each took."""
    for worker in workers:
        worker.send(json.dumps({"steps": steps, "computation_secs": computation_secs}))
    return [worker.receive()["seconds"] for worker in workers]


def _measure(workers: Sequence[Child], steps: int) -> dict[str, float]:
    before = loopback_bytes()
    seconds = max(seconds_of_round(workers, steps))
    moved = loopback_bytes() - before
    return {STEPS: steps / seconds, BYTES: moved / (steps * len(workers)) / 1e6}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
