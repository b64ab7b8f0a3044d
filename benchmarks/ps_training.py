"""Training on parameter servers: global steps per second and bytes moved per step.

    python -m benchmarks.ps_training [--rounds=5]

Real processes on the loopback, asynchronous workers, the 784-500-10 network with L2 and
exponential decay on batches of 100 digits.  Against TensorFlow's `ParameterServerStrategy` with
`ClusterCoordinator`; with 1, 2 and 4 workers and 1 and 2 parameter servers, and 8 and 4, against a
plain copy of the same bytes and the same steps without a parameter server; and a sparse embedding,
of which only the rows that a step touches may move.
"""

import contextlib
import functools
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks import ps_network, sizes
from benchmarks.child import Child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.machine import busy_secs
from benchmarks.traffic import loopback_bytes
from model_deploy.launch import ReservedPorts

UNIT, BYTES, WORK = "global steps/s", "MB per step", "processor ms per step"
QUANTITIES = (UNIT, BYTES)
STRATEGY = "ParameterServerStrategy"
COPY = "gRPC copy of the same bytes"
ALONE = "1 worker, no ps"
CLUSTERS = {
    f"{num_workers} worker{'s' * (num_workers > 1)}, {num_ps} ps": (num_workers, num_ps)
    for num_workers, num_ps in ((1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (4, 2), (8, 4))
}
BALANCED = {
    name: CLUSTERS[name] for name in ("2 workers, 2 ps", "4 workers, 2 ps", "8 workers, 4 ps")
}
# One worker of asynchronous clones: their number, and that of parameter servers.
CLONES = {
    "1 worker of 2 clones, 1 ps": (2, 1),
    "1 worker of 4 clones, 1 ps": (4, 1),
    "1 worker of 4 clones, 2 ps": (4, 2),
}


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """Against the peer, against the limit in two ways, and sparse."""
    yield _against_peer(settings)
    yield _against_limit(settings)
    yield _balanced(settings)
    yield _sparse(settings)


def _against_peer(settings: Settings) -> Benchmark:
    steps = settings.amount(200, quick=20)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        return {
            "train": start_cluster(stack, 2, 1, network="mlp", steps=steps),
            STRATEGY: start_strategy(stack, 2 * steps),
            f"{STRATEGY}, 10 steps per call": start_strategy(stack, 2 * steps, steps_per_call=10),
        }

    return Benchmark(
        title="1 parameter server, 2 workers",
        does=(
            "The 784-500-10 network, batches of 100. A step reads "
            f"{ps_network.MODEL_BYTES / 1e6:.2f} MB of variables and sends as much of gradients, "
            f"{ps_network.BYTES_PER_STEP / 1e6:.2f} MB; the bytes measured are those on the "
            "loopback. The strategy's coordinator schedules one step per call, as its guide does, "
            "or ten."
        ),
        quantities=QUANTITIES,
        reference=STRATEGY,
        start=start,
        goals=(Goal(UNIT, "train", STRATEGY, 1.6),),
    )


def _against_limit(settings: Settings) -> Benchmark:
    steps = settings.amount(200, quick=20)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        contenders = {COPY: _start_copy(stack, steps)}
        contenders[ALONE] = start_cluster(stack, 1, 0, network="mlp", steps=steps)
        for name, tasks in CLUSTERS.items():
            contenders[name] = start_cluster(stack, *tasks, network="mlp", steps=steps)
        return contenders

    return Benchmark(
        title="Workers and parameter servers",
        does=(
            "The same with 1, 2 and 4 workers and 1 and 2 parameter servers, and 8 and 4. The "
            "limit is one process that copies the bytes of a step from a parameter server and back "
            "and computes nothing; a worker without a parameter server computes, and copies "
            "nothing. Processor time is that of all processes."
        ),
        quantities=(UNIT, WORK, BYTES),
        reference=COPY,
        start=start,
        goals=(
            *(Goal(UNIT, name, COPY, 0.7) for name in CLUSTERS),
            Goal(UNIT, "8 workers, 4 ps", "4 workers, 2 ps", 1),
        ),
    )


def _balanced(settings: Settings) -> Benchmark:
    steps = settings.amount(200, quick=20)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        contenders = {COPY: _start_copy(stack, steps)}
        for name, tasks in BALANCED.items():
            contenders[name] = start_cluster(
                stack, *tasks, network="mlp", steps=steps, ps_strategy="balanced"
            )
        for name, (clones, num_ps) in CLONES.items():
            contenders[name] = _start_clones(stack, clones, num_ps, steps)
        return contenders

    return Benchmark(
        title="Balanced parameter servers, and a worker of asynchronous clones",
        does=(
            "The same with `ps_strategy='balanced'`: all variables are on one parameter server, as "
            "99% of the bytes are those of one variable. Of a worker's asynchronous clones one "
            "computes while another one copies."
        ),
        quantities=(UNIT, WORK),
        reference=COPY,
        start=start,
        goals=(
            *(Goal(UNIT, name, COPY, 0.7) for name in (*BALANCED, *CLONES)),
            Goal(UNIT, "8 workers, 4 ps", "4 workers, 2 ps", 1),
        ),
    )


def _sparse(settings: Settings) -> Benchmark:
    steps = settings.amount(200, quick=5)
    computed = {
        "rows touched (computed)": ps_network.TOUCHED_BYTES_PER_STEP,
        "whole table (computed)": 2 * sizes.ROWS * sizes.WIDTH * ps_network.FLOAT_BYTES,
    }

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        def constant(number: int) -> Measure:
            return lambda: {BYTES: number / 1e6}

        return {
            "train": start_cluster(stack, 1, 1, network="embedding", steps=steps),
            **{name: constant(number) for name, number in computed.items()},
        }

    return Benchmark(
        title="Sparse embedding on a parameter server",
        does=(
            f"A table of {sizes.ROWS:,} x {sizes.WIDTH}, {ps_network.ROWS_PER_STEP:,} random "
            "rows per step, 1 worker. For each row its values and its number go both ways."
        ),
        quantities=(BYTES,),
        reference="rows touched (computed)",
        start=start,
        goals=(Goal(BYTES, "train", "rows touched (computed)", 1.2, at_most=True),),
    )


def start_cluster(
    stack: contextlib.ExitStack,
    num_workers: int,
    num_ps: int,
    network: str,
    steps: int,
    *,
    ps_strategy: str = "round_robin",
) -> Measure:
    """This project's cluster: the measure of a round of `steps` steps per worker."""
    hosts = _hosts(stack, num_workers, num_ps)
    _start_ps(stack, hosts)
    # Kept here: at the end the workers are killed.
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    workers = [
        _start(
            stack,
            "ps_task",
            "serve_worker",
            **hosts,
            task_id=task,
            network=network,
            steps=steps,
            train_dir=folder,
            ps_strategy=ps_strategy,
        )
        for task in range(num_workers)
    ]
    for worker in workers:
        worker.wait_until_ready()
    return functools.partial(_measure, workers, num_workers * steps)


def _start_clones(stack: contextlib.ExitStack, clones: int, num_ps: int, steps: int) -> Measure:
    hosts = _hosts(stack, 1, num_ps)
    _start_ps(stack, hosts)
    amount = {"clones": clones, "steps": steps}
    child = _start(stack, "ps_task", "serve_clones", **hosts, network="mlp", **amount)
    child.wait_until_ready()
    return functools.partial(_measure, [child], clones * steps)


def _start_copy(stack: contextlib.ExitStack, steps: int) -> Measure:
    hosts = _hosts(stack, 1, 1)
    _start_ps(stack, hosts)
    child = _start(stack, "ps_task", "serve_copy", **hosts, steps=steps)
    child.wait_until_ready()
    return functools.partial(_measure, [child], steps)


def start_strategy(
    stack: contextlib.ExitStack, steps: int, steps_per_call: int = 1, **network: Any
) -> Measure:
    """2 workers, 1 parameter server and the coordinator; a round has `steps` steps in all."""
    hosts = _hosts(stack, 2, 1)
    cluster = {"worker": hosts["worker_hosts"], "ps": hosts["ps_hosts"]}
    tasks = [
        _start(stack, "ps_strategy_peer", "serve_task", cluster=cluster, job_name=job, task_id=task)
        for job, addresses in cluster.items()
        for task in range(len(addresses))
    ]
    for task in tasks:
        task.wait_until_ready()
    coordinator = _start(
        stack,
        "ps_strategy_peer",
        "serve_coordinator",
        cluster=cluster,
        steps=steps,
        steps_per_call=steps_per_call,
        **network,
    )
    coordinator.wait_until_ready()
    return functools.partial(_measure, [coordinator], steps)


def _hosts(stack: contextlib.ExitStack, num_workers: int, num_ps: int) -> dict[str, list[str]]:
    addresses = stack.enter_context(ReservedPorts(num_workers + num_ps)).addresses
    return {"worker_hosts": addresses[:num_workers], "ps_hosts": addresses[num_workers:]}


def _start_ps(stack: contextlib.ExitStack, hosts: dict[str, list[str]]) -> None:
    children = [
        _start(stack, "ps_task", "serve_ps", **hosts, task_id=task)
        for task in range(len(hosts["ps_hosts"]))
    ]
    for child in children:
        child.wait_until_ready()


def _start(stack: contextlib.ExitStack, module: str, function: str, **arguments: Any) -> Child:
    return stack.enter_context(Child(f"benchmarks.{module}", function, **arguments))


def _measure(children: list[Child], num_steps: int) -> dict[str, float]:
    """A round: all children at once, over when the last one is."""
    bytes_before, busy_before = loopback_bytes(), busy_secs()
    for child in children:
        child.send()
    seconds = max(child.receive()["seconds"] for child in children)
    moved, worked = loopback_bytes() - bytes_before, busy_secs() - busy_before
    return {
        UNIT: num_steps / seconds,
        BYTES: moved / num_steps / 1e6,
        WORK: 1e3 * worked / num_steps,
    }


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
