"""`plan_for`: every way to train a network, on paper, and the one to choose."""

import dataclasses
import itertools
from collections.abc import Sequence

from model_deploy.checks import check_at_least, check_choice, check_whole
from model_deploy.plan.failures import best_save_interval, useful_share
from model_deploy.plan.formulas import Link, Step, Way, step
from model_deploy.plan.network import Network
from model_deploy.plan.stragglers import expected_slowest

PRECISIONS = ("float32", "bfloat16")
# What a more troublesome way must gain to be chosen: stale gradients, rounded ones, machines.
_STALE_GAIN, _NARROW_GAIN, _SERVER_GAIN = 1.25, 1.05, 1.03


@dataclasses.dataclass(frozen=True)
class Circumstances:
    """What a plan assumes of machines and network.

    Attributes:
      link: of each process.
      step_secs: of a worker by itself, without any network; more than 0.
      step_deviation: standard deviation of that, in seconds.
      secs_between_failures: of one machine, on average; None if they do not fail.
      restart_secs: from a failure until steps go on.
      save_secs: how long a save holds up the training.

    Raises:
      ValueError: naming field, rule and value.
    """

    link: Link
    step_secs: float
    step_deviation: float = 0.0
    secs_between_failures: float | None = None
    restart_secs: float = 60.0
    save_secs: float = 10.0

    def __post_init__(self) -> None:
        if not self.step_secs > 0:
            raise ValueError(f"step_secs must be more than 0, got {self.step_secs}")
        check_at_least("step_deviation", self.step_deviation, 0)


@dataclasses.dataclass(frozen=True)
class Row:
    """A way to train on so many workers.

    Attributes:
      way: which.
      precision: in which values cross the wire.
      step: a step, of all workers or, where none waits for others, of each.
      images_per_sec: of all workers together, in time that counts: after what failures cost.
      efficiency: that over as many workers by themselves, without network and failures.
      save_interval: the best one, in seconds; None where no machine fails.
      worker_memory: bytes on each device of a worker.
      ps_memory: bytes on a parameter server; 0 without them.
    """

    way: Way
    precision: str
    step: Step
    images_per_sec: float
    efficiency: float
    save_interval: float | None
    worker_memory: int
    ps_memory: int

    @property
    def name(self) -> str:
        """In words."""
        servers = f", {self.way.ps} ps" if self.way.ps else ""
        narrow = "" if self.precision == "float32" else ", 16 bits"
        return f"{self.way.name.replace('_', '-')}{servers}{narrow}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """All rows for some numbers of workers, and for each number the choice.

    Attributes:
      rows: by number of workers, then as they were asked for.
      choices: for each number of workers a row, and why it.
    """

    rows: tuple[Row, ...]
    choices: tuple[tuple[Row, str], ...]


def plan_for(
    network: Network,
    circumstances: Circumstances,
    workers: Sequence[int],
    ps: Sequence[int] = (1, 2, 4, 8),
    precisions: Sequence[str] = PRECISIONS,
) -> Plan:
    """Works out every way to train.

    Args:
      network: what is trained.
      circumstances: on what.
      workers: numbers of workers, each at least 1.
      ps: numbers of parameter servers; those beyond the number of workers are left out, but 1.
      precisions: some of `float32` and `bfloat16`.

    Raises:
      ValueError: naming field, rule and value.
    """
    for each in ps:
        check_whole("ps", each, 1)
    for precision in precisions:
        check_choice("precision", precision, PRECISIONS)
    rows: list[Row] = []
    choices = []
    for count in workers:
        check_whole("workers", count, 1)
        servers = [each for each in ps if each <= max(count, min(ps))]
        ways = [Way("all_reduce", count)]
        for name in ("synchronous", "asynchronous"):
            ways += [Way(name, count, each) for each in servers]
        found = [
            _row(network, circumstances, way, precision)
            for way, precision in itertools.product(ways, precisions)
        ]
        rows += found
        choices.append(choose(found))
    return Plan(tuple(rows), tuple(choices))


def choose(rows: Sequence[Row]) -> tuple[Row, str]:
    """The row to take of those for one number of workers, and why.

    Of rows that are about as quick it is the one with less trouble: 32 bits before 16, fewer
    parameter servers before more, and none before any; stale gradients last, for they need more
    steps than others.
    """
    best = max(rows, key=lambda row: row.images_per_sec)

    def worth(row: Row) -> float:
        stale = _STALE_GAIN if row.way.name == "asynchronous" else 1.0
        narrow = _NARROW_GAIN if row.precision != "float32" else 1.0
        servers = _SERVER_GAIN ** (row.way.ps.bit_length())
        return row.images_per_sec / stale / narrow / servers

    chosen = max(rows, key=worth)
    share = chosen.images_per_sec / best.images_per_sec
    limit = {
        "none": "nothing crosses a link",
        "computation": "computation is the limit",
        "messages": "messages, one after the other, are the limit",
    }.get(chosen.step.link, f"the link of a {chosen.step.link} is the limit")
    if chosen is best:
        return chosen, f"the most images/s; {limit}"
    return chosen, f"{share:.0%} of the images/s of {best.name}, with less trouble; {limit}"


def _row(network: Network, given: Circumstances, way: Way, precision: str) -> Row:
    secs = given.step_secs
    if way.name != "asynchronous":
        secs = expected_slowest(way.workers, secs, given.step_deviation)
    wire_share = 1.0 if precision == "float32" else 0.5
    found = step(way, network.load(secs, way.ps, wire_share), given.link)
    if found.secs < 1.02 * secs:
        found = dataclasses.replace(found, link="computation")
    share, interval = _share_of_time(given, way)
    rate = way.workers * network.batch_size / found.secs * share
    alone = way.workers * network.batch_size / given.step_secs
    worker, server = memory(network, way)
    return Row(way, precision, found, rate, rate / alone, interval, worker, server)


def _share_of_time(given: Circumstances, way: Way) -> tuple[float, float | None]:
    """The share of time that counts, and the save interval, where machines fail.

    Any failure stops all workers; of asynchronous ones only that of a parameter server does.
    """
    if given.secs_between_failures is None:
        return 1.0, None
    machines = way.ps if way.name == "asynchronous" else way.workers + way.ps
    between = given.secs_between_failures / machines
    interval = best_save_interval(given.save_secs, between)
    share = useful_share(interval, given.save_secs, given.restart_secs, between)
    if way.name == "asynchronous":  # and a worker only itself
        share *= given.secs_between_failures / (given.secs_between_failures + given.restart_secs)
    return share, interval


def memory(network: Network, way: Way) -> tuple[int, int]:
    """Bytes on each device of a worker, and on a parameter server.

    A device has activations and gradients; with all-reduce also the packs of the gradients and all
    that the optimizer keeps; else what it has read of the variables.  A parameter server has its
    part of all variables, gradients that arrive and, where updates are joined, their sums.
    """
    gradients = network.trained_bytes
    here = network.activation_bytes + gradients
    if way.name == "all_reduce":
        return here + gradients + network.state_bytes, 0
    sums = gradients if way.name == "synchronous" else 0
    server = (network.state_bytes + gradients + sums) // way.ps
    return here + sum(network.variable_bytes), server
