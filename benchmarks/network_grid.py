"""The grid of measurements over slow links: clusters, and what each is measured with."""

import contextlib
import dataclasses
import statistics
from collections.abc import Iterator, Sequence

from benchmarks import namespaces
from benchmarks.child import Child
from benchmarks.traffic import link_bytes
from benchmarks.wire import seconds_of_round, start_workers
from model_deploy import plan

_FIRST_PORT = 2222
# A round takes at typical so long, in seconds on paper, and so many steps.
_ROUND_SECS, _ROUND_STEPS = 3.0, 3
LAYERS = 20
# Of the machine on which the kept figures were measured: seconds for which a core has to do with
# each byte of a worker's variables in a step, beside the wire, and the cores that all share.
_HANDLING, _CORES = 0.4e-9, 2


@dataclasses.dataclass(frozen=True)
class Group:
    """Processes that train a network of `layers.Computation`.

    Attributes:
      way: `all_reduce`, `synchronous` or `asynchronous`.
      workers: number of workers.
      ps: number of parameter servers.
      megabytes: of float32 gradients, in `layers` equal variables.
      layers: of the network.
      clones: of each worker.
    """

    way: str
    workers: int
    ps: int
    megabytes: int
    layers: int = LAYERS
    clones: int = 1

    @property
    def name(self) -> str:
        """As the command line has it."""
        parts = [self.way, f"{self.workers}w"]
        parts += [f"{self.ps}ps"] if self.ps else []
        parts += [f"{self.megabytes}MB"]
        parts += [f"{self.layers}layers"] if self.layers != LAYERS else []
        parts += [f"{self.clones}clones"] if self.clones > 1 else []
        return "-".join(parts)

    def planned(self, megabits: int, computation_secs: float) -> plan.Step:
        """What a step takes on paper."""
        layer_bytes = [self.megabytes * 1e6 / self.layers] * self.layers
        return plan.step(
            plan.Way(self.way, self.workers, self.ps),
            plan.Load(tuple(layer_bytes), computation_secs),
            plan.Link(megabits * 1e6 / 8, handling_secs_per_byte=_HANDLING * self.workers / _CORES),
        )

    def transfer_secs(self, megabits: int) -> float:
        """The limit of the wire."""
        return self.planned(megabits, 0.0).wire_secs


# Rates in Mbit/s. What all links carry together must be what two cores can move.
GRID: dict[Group, tuple[int, ...]] = {
    Group("all_reduce", 2, 0, 40): (100, 400, 2000),
    Group("all_reduce", 4, 0, 4): (100,),
    Group("all_reduce", 4, 0, 40): (100, 400),
    Group("all_reduce", 8, 0, 40): (100, 200),
    Group("all_reduce", 16, 0, 4): (100,),
    Group("all_reduce", 2, 0, 400): (2000,),
    Group("all_reduce", 4, 0, 40, clones=2): (400,),
    Group("synchronous", 2, 1, 40): (400, 2000),
    Group("synchronous", 4, 1, 40): (400,),
    Group("synchronous", 4, 2, 40): (400, 1000),
    Group("synchronous", 8, 4, 40): (400,),
    Group("synchronous", 16, 4, 4): (100,),
    Group("synchronous", 2, 2, 400): (2000,),
    Group("synchronous", 4, 2, 40, clones=2): (400,),
    Group("asynchronous", 2, 1, 40): (400, 2000),
    Group("asynchronous", 4, 1, 40): (400,),
    Group("asynchronous", 4, 2, 40): (400, 1000),
    Group("asynchronous", 8, 4, 40): (400,),
    Group("asynchronous", 16, 4, 4): (100,),
    Group("asynchronous", 2, 2, 400): (2000,),
}


@dataclasses.dataclass(frozen=True)
class Measured:
    """One row of the grid, measured.

    Attributes:
      way: as that of the group, and so on.
      megabits: rate of each link, in each direction.
      computation_secs: of each step.
      seconds: per step, one number for each round.
      worker_sent: MB per step on the link of a worker, mean over the workers.
      worker_received: in the other direction.
      ps_sent: MB per step of a worker on the fullest link of a parameter server.
      ps_received: in the other direction.
    """

    way: str
    workers: int
    ps: int
    megabytes: int
    layers: int
    clones: int
    megabits: int
    computation_secs: float
    seconds: tuple[float, ...]
    worker_sent: float
    worker_received: float
    ps_sent: float
    ps_received: float

    @property
    def group(self) -> Group:
        """The processes."""
        fields = [field.name for field in dataclasses.fields(Group)]
        return Group(**{name: getattr(self, name) for name in fields})

    @property
    def planned(self) -> plan.Step:
        """What the plan says."""
        return self.group.planned(self.megabits, self.computation_secs)

    @property
    def typical(self) -> float:
        """Of the rounds: what else this machine does makes others longer.

        Of asynchronous workers the mean: what disturbs them lets them come apart.
        """
        mean = statistics.mean(self.seconds)
        return mean if self.way == "asynchronous" else min(self.seconds)

    def __str__(self) -> str:
        planned = self.planned
        parts = [
            f"{self.group.name:<32} {self.megabits:>5} Mbit/s",
            f"computing {self.computation_secs:6.2f} s",
            f"{self.typical:6.3f} s (to {max(self.seconds):.3f})",
            f"wire {planned.wire_secs:6.3f}",
            f"plan {planned.secs:6.3f} ({planned.secs / self.typical - 1:+.0%})",
            f"MB sent {self.worker_sent:.1f}",
        ]
        return "  ".join(parts + ([f"by ps {self.ps_sent:.1f}"] if self.ps else []))


def measure(
    group: Group, rates: Sequence[int], rounds: int, computing: Sequence[float] = (0.0, 1.0)
) -> Iterator[Measured]:
    """Measures a group of processes at each rate, with each share of the transfer as computation.

    Raises:
      OSError: if the network cannot be made.
    """
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(
            namespaces.slow_network(group.workers + group.ps, max(2000, *rates))
        )
        addresses = [f"{host.address}:{_FIRST_PORT}" for host in hosts]
        workers = start_workers(
            stack,
            addresses[: group.workers],
            addresses[group.workers :],
            [host.within for host in hosts],
            way=group.way,
            wire_precision="float32",
            megabytes=group.megabytes,
            layers=group.layers,
            num_clones=group.clones,
        )
        for megabits in rates:
            namespaces.set_rate(hosts, megabits)
            for share in computing:
                secs = share * group.transfer_secs(megabits)
                yield _measure(
                    group,
                    hosts,
                    workers,
                    megabits=megabits,
                    computation_secs=secs,
                    rounds=rounds,
                )


def _measure(
    group: Group,
    hosts: Sequence[namespaces.Host],
    workers: Sequence[Child],
    *,
    megabits: int,
    computation_secs: float,
    rounds: int,
) -> Measured:
    planned = group.planned(megabits, computation_secs)
    steps = max(_ROUND_STEPS, round(_ROUND_SECS / planned.secs))
    seconds_of_round(workers, 1, computation_secs)  # connections adapt to the rate
    before = [link_bytes(host.interface) for host in hosts]
    # Where no worker waits for others, all together make so many steps per second.
    together = statistics.harmonic_mean if group.way == "asynchronous" else max
    seconds = [
        together(seconds_of_round(workers, steps, computation_secs)) / steps for _ in range(rounds)
    ]
    after = [link_bytes(host.interface) for host in hosts]
    pairs = list(zip(before, after, strict=True))
    # What a host sends is received by this machine's end of the link.
    sent, received = (
        [(late[i] - early[i]) / (steps * rounds) / 1e6 for early, late in pairs] for i in (0, 1)
    )
    return Measured(
        **dataclasses.asdict(group),
        megabits=megabits,
        computation_secs=computation_secs,
        seconds=tuple(seconds),
        worker_sent=statistics.mean(sent[: group.workers]),
        worker_received=statistics.mean(received[: group.workers]),
        ps_sent=max(sent[group.workers :], default=0.0) / group.workers,
        ps_received=max(received[group.workers :], default=0.0) / group.workers,
    )
