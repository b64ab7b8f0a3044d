"""`plan_for`: estimates every way to train a network, and chooses one."""

import dataclasses
import itertools
from collections.abc import Sequence

from model_deploy.checks import check_at_least, check_choice, check_whole
from model_deploy.plan.failures import best_save_interval, useful_share
from model_deploy.plan.formulas import Link, Step, Way, step
from model_deploy.plan.network import Network
from model_deploy.plan.stragglers import expected_slowest

PRECISIONS = ("float32", "bfloat16")
# By which factor stale gradients, rounded gradients, and more servers must be faster to be chosen.
_STALE_GAIN, _NARROW_GAIN, _SERVER_GAIN = 1.25, 1.05, 1.03


@dataclasses.dataclass(frozen=True)
class Circumstances:
    """A plan's assumptions about machines and network.

    Attributes:
      link: the link of each process.
      step_secs: seconds of a single worker's step, without network; more than 0.
      step_deviation: standard deviation of `step_secs`.
      secs_between_failures: mean time between failures of one machine; None if none fail.
      restart_secs: time from a failure until steps go on.
      save_secs: how long a save stops the training.

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
    """The estimate for a way to train on a number of workers.

    Attributes:
      way: the way to train.
      precision: type of values on the wire.
      step: a step of all workers or, for asynchronous ones, of each worker.
      images_per_sec: rate of all workers together, time lost by failures included.
      efficiency: this rate relative to that of so many workers without network and failures.
      save_interval: the best interval in seconds; None if machines do not fail.
      worker_memory: bytes on each device of a worker.
      ps_memory: bytes on a parameter server; 0 without parameter servers.
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
        """The way in words."""
        servers = f", {self.way.ps} ps" if self.way.ps else ""
        narrow = "" if self.precision == "float32" else ", 16 bits"
        return f"{self.way.name.replace('_', '-')}{servers}{narrow}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """The rows for some numbers of workers, and the choice for each number.

    Attributes:
      rows: the rows by number of workers, then in the order asked for.
      choices: for each number of workers the chosen row, and the reason.
    """

    rows: tuple[Row, ...]
    choices: tuple[tuple[Row, str], ...]


def plan_for(
    network: Network,
    circumstances: Circumstances,
    workers: Sequence[int],
    ps: Sequence[int] = (1, 2, 4, 8),
    precisions: Sequence[str] = PRECISIONS,
    *,
    rotate_steps: bool = False,
) -> Plan:
    """Estimates every way to train.

    Args:
      network: the network to train.
      circumstances: machines and network.
      workers: numbers of workers, each at least 1.
      ps: numbers of parameter servers; numbers above that of workers are left out.
      precisions: some of `float32` and `bfloat16`.
      rotate_steps: whether all-reduce, and synchronous parameter servers, may rotate steps, too.

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
        ways += [Way("rotated", count)] if rotate_steps else []
        of_servers = ("synchronous", "rotated") if rotate_steps else ("synchronous",)
        for name in (*of_servers, "asynchronous"):
            ways += [Way(name, count, each) for each in servers]
        found = [
            _row(network, circumstances, way, precision)
            for way, precision in itertools.product(ways, precisions)
        ]
        rows += found
        choices.append(choose(found))
    return Plan(tuple(rows), tuple(choices))


def choose(rows: Sequence[Row]) -> tuple[Row, str]:
    """Returns the best of the rows for one number of workers, and the reason.

    Of rows that are about equally fast the simplest wins: 32 bits before 16, fewer parameter
    servers before more, and stale gradients last, as they need more steps.
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
    """Returns the fraction of useful time, and the save interval, if machines fail.

    Any failure stops all workers; asynchronous ones are stopped only by that of a parameter server.
    """
    if given.secs_between_failures is None:
        return 1.0, None
    machines = way.ps if way.name == "asynchronous" else way.workers + way.ps
    between = given.secs_between_failures / machines
    interval = best_save_interval(given.save_secs, between)
    share = useful_share(interval, given.save_secs, given.restart_secs, between)
    if way.name == "asynchronous":  # a failed worker stops only itself
        share *= given.secs_between_failures / (given.secs_between_failures + given.restart_secs)
    return share, interval


def memory(network: Network, way: Way) -> tuple[int, int]:
    """Returns the bytes on each device of a worker, and on a parameter server.

    A device holds activations and gradients; with all-reduce also packs of gradients, variables and
    slots; else the variables that it has read, with rotated steps also their next values.  A
    parameter server holds its share of variables and slots, arriving gradients and, for synchronous
    updates, their sums.
    """
    gradients = network.trained_bytes
    here = network.activation_bytes + gradients
    if way.is_ring:
        return here + gradients + network.state_bytes, 0
    sums = 0 if way.name == "asynchronous" else gradients
    ahead = gradients if way.name == "rotated" else 0
    server = (network.state_bytes + gradients + sums) // way.ps
    return here + sum(network.variable_bytes) + ahead, server
