"""Formulas for the time of a step by each way to train, and for the bytes on each link.

They assume a network of layers with one variable each and equal computation times, and links that
carry the same in both directions at once and are the only shared resource.
"""

import dataclasses
from collections.abc import Collection

from model_deploy.checks import check_at_least, check_choice, check_whole
from model_deploy.collectives import left_packs, packs_of

WAYS = ("all_reduce", "rotated", "synchronous", "asynchronous")
# Those of a ring of all workers, if they have no parameter servers.
RINGS = ("all_reduce", "rotated")
# Of 1500 bytes in an Ethernet frame, 52 are headers of IPv4 and TCP with time stamps (RFC 791,
# RFC 9293, RFC 7323); the frame itself adds 14 bytes.
FRAME_BYTES, FRAME_PAYLOAD = 1514, 1448
# The backward pass has two matrix products for each one of the forward pass.
FORWARD_SHARE = 1 / 3
# How many packs of gradients `model_deploy.all_reduce` sends at a time.
PACKS_UNDER_WAY = 4
# How far asynchronous workers spread out: 0 if they stay in step, 1 if they never share a link.
APART = 0.3


@dataclasses.dataclass(frozen=True)
class Link:
    """A process's link to a network that has capacity for all links.

    Attributes:
      bytes_per_sec: capacity in each direction, headers included; more than 0.
      latency_secs: time from sending a small message to its arrival.
      handling_secs_per_byte: time that a worker in a ring takes per byte of its gradients, such as
        for copying and adding, before sending it on.

    Raises:
      ValueError: naming field, rule and value.
    """

    bytes_per_sec: float
    latency_secs: float = 0.0002
    handling_secs_per_byte: float = 0.0

    def __post_init__(self) -> None:
        if not self.bytes_per_sec > 0:
            raise ValueError(f"bytes_per_sec must be more than 0, got {self.bytes_per_sec}")
        check_at_least("latency_secs", self.latency_secs, 0)
        check_at_least("handling_secs_per_byte", self.handling_secs_per_byte, 0)

    def secs(self, num_bytes: float) -> float:
        """Returns the seconds that so many bytes of tensors take."""
        return num_bytes * FRAME_BYTES / FRAME_PAYLOAD / self.bytes_per_sec


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to train on several workers.

    Attributes:
      name: one of `WAYS`.
      workers: number of workers.
      ps: number of parameter servers; 0 for all-reduce, rotated or not.

    Raises:
      ValueError: naming field, rule and value.
    """

    name: str
    workers: int
    ps: int = 0

    def __post_init__(self) -> None:
        check_choice("name", self.name, WAYS)
        check_whole("workers", self.workers, 1)
        check_whole("ps", self.ps, 0 if self.name in RINGS else 1)

    @property
    def is_ring(self) -> bool:
        """Whether there is no parameter server."""
        return self.ps == 0


@dataclasses.dataclass(frozen=True)
class Load:
    """The work of a worker's step.

    Attributes:
      layer_bytes: bytes on the wire of each variable, and so of its gradient, in the order of the
        forward pass.
      computation_secs: seconds of forward and backward pass.
      ps_of_layer: parameter server of each variable; by default in turn.
      wire_share: ratio of bytes on the wire to bytes in memory, which decide packs: 1 / 2 for 16
        bits on the wire.
    """

    layer_bytes: tuple[float, ...]
    computation_secs: float
    ps_of_layer: tuple[int, ...] | None = None
    wire_share: float = 1.0

    @property
    def total_bytes(self) -> float:
        """The bytes of all variables."""
        return sum(self.layer_bytes)

    def owners(self, ps: int) -> tuple[int, ...]:
        """Returns the parameter server of each layer, for `ps` servers."""
        return self.ps_of_layer or tuple(i % ps for i in range(len(self.layer_bytes)))


@dataclasses.dataclass(frozen=True)
class Step:
    """The estimate of a step.

    Attributes:
      secs: duration of the step.
      wire_secs: time that the busiest link needs, both directions one after the other if the way
        uses them so.
      link: the bottleneck: the link of a `worker` or a `parameter server`; `messages`, one after
        the other, if they take longer; `none` for a single worker.
      worker_bytes: bytes of tensors on a worker's link, in each direction.
      ps_bytes: bytes on the busiest link of a parameter server, in each direction, for one step
        of every worker.
    """

    secs: float
    wire_secs: float
    link: str
    worker_bytes: float
    ps_bytes: float


def step(way: Way, load: Load, link: Link) -> Step:
    """Estimates a step by any way; see the functions of the ways' names, and `rotated_servers`.

    Raises:
      ValueError: if the load has no layer.
    """
    if not load.layer_bytes:
        raise ValueError("layer_bytes must have at least one, got none")
    if way.is_ring:
        return (all_reduce if way.name == "all_reduce" else rotated)(way.workers, load, link)
    on_servers = {"synchronous": synchronous, "rotated": rotated_servers}
    return on_servers.get(way.name, asynchronous)(way, load, link)


def all_reduce(workers: int, load: Load, link: Link) -> Step:
    """Estimates a step by a ring of all workers.

    Each of n workers sends, and receives, 2 (n - 1) / n of the gradients, whatever n is, and none
    can do with less (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of
    workstations, Journal of Parallel and Distributed Computing 69, 2009).  For each pack that takes
    2 (n - 1) messages one after the other; while they are under way, so are those of three other
    packs.  With hundreds of workers these messages are the limit, and no bytes.

    Gradients are computed from the last layer to the first, in the last two thirds of the
    computation; a pack is sent when it is full and the previous one has been sent.  The next step
    begins when the last pack has arrived.
    """
    if workers == 1:
        return Step(load.computation_secs, 0.0, "none", 0.0, 0.0)
    ring = _Ring(workers, load, link)
    end = ring.backward(load.computation_secs * FORWARD_SHARE, range(len(ring.packs)))
    return ring.step(end)


def rotated(workers: int, load: Load, link: Link) -> Step:
    """Estimates a step by a ring of all workers, of which a third is left to the next one.

    As `all_reduce`, but of the packs those of `left_packs` come beside the next forward pass, from
    the first layer to the last, one at a time; a layer waits for its own.  So a step begins with
    what the one before has left.
    """
    if workers == 1:
        return Step(load.computation_secs, 0.0, "none", 0.0, 0.0)
    ring = _Ring(workers, load, link)
    left = left_packs([sum(load.layer_bytes[i] for i in pack) for pack in ring.packs])
    sent, now, arrived = 0.0, 0.0, {}
    for k in reversed(left):
        sent += max(ring.secs[k], ring.messages)
        arrived.update(dict.fromkeys(ring.packs[k], sent))
    for layer in range(len(load.layer_bytes)):
        now = max(now, arrived.get(layer, 0.0)) + ring.layer_secs * FORWARD_SHARE
    stay = [k for k in range(len(ring.packs)) if k not in left]
    return ring.step(max(now, ring.backward(now, stay, sent)))


class _Ring:
    """The packs of a ring of workers, in the order in which a backward pass fills them.

    Attributes:
      packs: the layers of each pack.
      secs: that each pack takes on a link.
      messages: seconds of the messages of a pack.
      layer_secs: of computation.
    """

    def __init__(self, workers: int, load: Load, link: Link) -> None:
        self._load, self._link = load, link
        self._share = 2 * (workers - 1) / workers
        self.packs = packs_of([size / load.wire_share for size in load.layer_bytes], workers)
        self.secs = [
            link.secs(self._share * sum(load.layer_bytes[i] for i in pack)) for pack in self.packs
        ]
        self.messages = 2 * (workers - 1) * link.latency_secs
        self.layer_secs = load.computation_secs / len(load.layer_bytes)

    def backward(self, now: float, sent: Collection[int], end: float = 0.0) -> float:
        """Returns when the backward pass and the transfer of some of its packs have ended.

        Args:
          now: when it begins.
          sent: places of packs.
          end: until when the link is busy.
        """
        for k, pack in enumerate(self.packs):
            now += self.layer_secs * (1 - FORWARD_SHARE) * len(pack)
            if k in sent:
                end = max(end, now) + max(self.secs[k], self.messages / PACKS_UNDER_WAY)
        return max(now, end)

    def step(self, end: float) -> Step:
        """Returns the estimate of a step, with what comes to the time of packs and layers."""
        total = self._load.total_bytes
        by_messages = len(self.packs) * self.messages / PACKS_UNDER_WAY
        sent = self._share * total
        wire = self._link.secs(sent)
        secs = end + self.messages + self._link.handling_secs_per_byte * total
        return Step(secs, wire, "worker" if by_messages < wire else "messages", sent, 0.0)


def synchronous(way: Way, load: Load, link: Link) -> Step:
    """Estimates a step of all workers together on parameter servers.

    Each parameter server sends each of its variables to each worker, in the order in which the
    forward pass needs them, and receives as many gradients, as the backward pass makes them.  All
    workers do the same at the same time, so a link is used in one direction and then in the other:
    2 n times what the fullest server has, or 2 times all variables on a worker's link (Li et al.,
    Scaling distributed machine learning with the parameter server, OSDI 2014, has the scheme).
    Then the chief updates the variables and tells the workers, in four messages, each after
    the other.
    """
    secs = _overlapped_secs(way.workers, way.ps, load, link)
    wire, name, sent = _busiest(way, load, link)
    secs += 4 * link.latency_secs
    return Step(secs, 2 * wire, name, load.total_bytes, sent)


def rotated_servers(way: Way, load: Load, link: Link) -> Step:
    """Estimates a step of all workers together on parameter servers, with rotated steps.

    As `synchronous`, but each variable is updated when all workers' gradients of it are there, and
    sent to them at once.  So both directions of a link are used at the same time, beside the
    backward pass, and the forward pass begins with all variables there.
    """
    layers = list(zip(load.layer_bytes, load.owners(way.ps), strict=True))
    backward = load.computation_secs * (1 - FORWARD_SHARE) / len(layers)
    now = end = load.computation_secs * FORWARD_SHARE
    to_servers, to_workers = (_Links(way.workers, way.ps, link) for _ in range(2))
    for size, owner in reversed(layers):
        now += backward
        end = max(end, to_workers.move(to_servers.move(now, size, owner), size, owner))
    wire, name, sent = _busiest(way, load, link)
    return Step(end + 4 * link.latency_secs, wire, name, load.total_bytes, sent)


def asynchronous(way: Way, load: Load, link: Link) -> Step:
    """Estimates a step of each worker on parameter servers, where no worker waits for others.

    Lower bounds are the time of a worker alone with the servers, and the time of the busiest link
    in one direction, as other workers may use the other direction meanwhile (Denning and Buzen, The
    operational analysis of queueing network models, ACM Computing Surveys 10, 1978).  But equal
    workers nearly fall into step: workers that read at the same time share the links, and so get
    the last variable and send gradients at the same time, as in `synchronous`.  Measured steps are
    three tenths of the way from there to the bounds.
    """
    together = _overlapped_secs(way.workers, way.ps, load, link)
    wire, name, sent = _busiest(way, load, link)
    apart = max(_overlapped_secs(1, way.ps, load, link), wire)
    secs = together - APART * (together - apart) + 2 * link.latency_secs
    return Step(secs, wire, name, load.total_bytes, sent)


def _busiest(way: Way, load: Load, link: Link) -> tuple[float, str, float]:
    """Returns the seconds of the busiest link in one direction, its owner, and a server's bytes."""
    owners = load.owners(way.ps)
    fullest = max(
        sum(size for size, owner in zip(load.layer_bytes, owners, strict=True) if owner == ps)
        for ps in range(way.ps)
    )
    sent = way.workers * fullest
    by_ps = (link.secs(sent), "parameter server", sent)
    by_worker = (link.secs(load.total_bytes), "worker", sent)
    return max(by_ps, by_worker, key=lambda each: each[0])


def _overlapped_secs(workers: int, ps: int, load: Load, link: Link) -> float:
    """Returns the seconds to read variables, compute and send gradients, with overlaps."""
    layers = list(zip(load.layer_bytes, load.owners(ps), strict=True))
    forward = load.computation_secs * FORWARD_SHARE / len(layers)
    backward = load.computation_secs * (1 - FORWARD_SHARE) / len(layers)
    now = 0.0
    links = _Links(workers, ps, link)
    for size, owner in layers:
        now = max(now, links.move(0.0, size, owner)) + forward
    end = now
    links = _Links(workers, ps, link)
    for size, owner in reversed(layers):
        now += backward
        end = max(end, links.move(now, size, owner))
    return end


class _Links:
    """The links in one direction, each with the time until which it is busy."""

    def __init__(self, workers: int, ps: int, link: Link) -> None:
        self._workers, self._link = workers, link
        self._worker, self._ps = 0.0, [0.0] * ps

    def move(self, ready: float, size: float, ps: int) -> float:
        """Returns when a tensor of each worker, ready at a given time, has crossed the links."""
        self._worker = max(self._worker, ready) + self._link.secs(size)
        self._ps[ps] = max(self._ps[ps], ready) + self._link.secs(self._workers * size)
        return max(self._worker, self._ps[ps])
