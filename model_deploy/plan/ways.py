"""How long a step takes by each way to train, and what crosses each link: formulas.

All of them take a network of layers, each with a variable, whose computation takes equal times.
Links carry as much in one direction as in the other at the same time, and are the only thing that
processes share.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from model_deploy.checks import check_choice, check_whole

WAYS = ("all_reduce", "synchronous", "asynchronous")
# Of a frame of Ethernet with 1500 bytes of payload, 52 are the headers of IPv4 and of TCP with
# time stamps (RFC 791, RFC 9293, RFC 7323); the frame has 14 bytes of its own.
FRAME_BYTES, FRAME_PAYLOAD = 1514, 1448
# The backward pass has two products of matrices for each one of the forward pass.
FORWARD_SHARE = 1 / 3
# As `model_deploy.all_reduce` packs gradients.
PACK_BYTES = 4 << 20


@dataclasses.dataclass(frozen=True)
class Link:
    """Each process's link to a network that has room for all of them.

    Attributes:
      bytes_per_sec: in each direction, headers included; more than 0.
      latency_secs: from the sending of a small message until it is there.
    """

    bytes_per_sec: float
    latency_secs: float = 0.0002

    def secs(self, num_bytes: float) -> float:
        """How long so many bytes of tensors take."""
        return num_bytes * FRAME_BYTES / FRAME_PAYLOAD / self.bytes_per_sec


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to train on several workers.

    Attributes:
      name: one of `WAYS`.
      workers: how many.
      ps: number of parameter servers; 0 for all-reduce.

    Raises:
      ValueError: naming field, rule and value.
    """

    name: str
    workers: int
    ps: int = 0

    def __post_init__(self) -> None:
        check_choice("name", self.name, WAYS)
        check_whole("workers", self.workers, 1)
        check_whole("ps", self.ps, 0 if self.name == "all_reduce" else 1)


@dataclasses.dataclass(frozen=True)
class Load:
    """What a worker's step has to do.

    Attributes:
      layer_bytes: what the variables, and so their gradients, take on the wire, in the order in
        which the forward pass needs them.
      computation_secs: of forward and backward pass.
      ps_of_layer: which parameter server has it; in turn, if not given.
    """

    layer_bytes: tuple[float, ...]
    computation_secs: float
    ps_of_layer: tuple[int, ...] | None = None

    @property
    def total_bytes(self) -> float:
        """Of all variables."""
        return sum(self.layer_bytes)


@dataclasses.dataclass(frozen=True)
class Step:
    """A step on paper.

    Attributes:
      secs: until all is done.
      wire_secs: what the busiest link needs alone, one direction after the other where the
        way has it so.
      link: which link that is.
      worker_bytes: of tensors, on the link of a worker, in each direction.
      ps_bytes: on the fullest link of a parameter server, in each direction; for a step of
        every worker.
    """

    secs: float
    wire_secs: float
    link: str
    worker_bytes: float
    ps_bytes: float


def step(way: Way, load: Load, link: Link) -> Step:
    """A step by any way; see `all_reduce`, `synchronous` and `asynchronous`."""
    if way.workers == 1 and way.name == "all_reduce":
        return Step(load.computation_secs, 0.0, "none", 0.0, 0.0)
    if way.name == "all_reduce":
        return all_reduce(way.workers, load, link)
    return synchronous(way, load, link)


def all_reduce(workers: int, load: Load, link: Link) -> Step:
    """A step by a ring of all workers.

    Each of n workers sends, and receives, 2 (n - 1) / n of the gradients, whatever n is, and none
    can do with less (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of
    workstations, Journal of Parallel and Distributed Computing 69, 2009).
    """
    share = 2 * (workers - 1) / workers
    ready, end = load.computation_secs * FORWARD_SHARE, 0.0
    backward = (load.computation_secs - ready) / len(load.layer_bytes)
    pack = 0.0
    for i, size in reversed(list(enumerate(load.layer_bytes))):
        ready += backward
        pack += size
        if i == 0 or pack + load.layer_bytes[i - 1] > PACK_BYTES:
            end = max(end, ready) + link.secs(share * pack)
            pack = 0.0
    sent = share * load.total_bytes
    return Step(end, link.secs(sent), "worker", sent, 0.0)


def synchronous(way: Way, load: Load, link: Link) -> Step:
    """A step on parameter servers, of all workers together."""
    owners = load.ps_of_layer or tuple(i % way.ps for i in range(len(load.layer_bytes)))
    layers = list(zip(load.layer_bytes, owners, strict=True))
    count = len(layers)
    now = 0.0
    forward = load.computation_secs * FORWARD_SHARE / count
    backward = load.computation_secs * (1 - FORWARD_SHARE) / count
    links = _Links(way, link)
    for size, owner in layers:
        now = max(now, links.move(0.0, size, owner)) + forward
    links = _Links(way, link)
    end = now
    for size, owner in reversed(layers):
        now += backward
        end = max(end, links.move(now, size, owner))
    fullest = max(sum(size for size, owner in layers if owner == ps) for ps in range(way.ps))
    sent = way.workers * fullest
    by_ps, by_worker = 2 * link.secs(sent), 2 * link.secs(load.total_bytes)
    wire, name = max((by_ps, "parameter server"), (by_worker, "worker"))
    return Step(end, wire, name, load.total_bytes, sent)


class _Links:
    """The links in one direction, each until when it is busy."""

    def __init__(self, way: Way, link: Link) -> None:
        self._way, self._link = way, link
        self._worker, self._ps = 0.0, [0.0] * way.ps

    def move(self, ready: float, size: float, ps: int) -> float:
        """When a tensor of each worker, ready at a time, has come from or to a server."""
        self._worker = max(self._worker, ready) + self._link.secs(size)
        self._ps[ps] = max(self._ps[ps], ready) + self._link.secs(self._way.workers * size)
        return max(self._worker, self._ps[ps])
