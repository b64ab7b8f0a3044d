"""Worlds: the present workers of an elastic run, in a *world file* that is replaced as a whole.

    {"version": 1, "generation": 2, "max_workers": 3,
     "workers": {"0": "10.0.0.1:2301", "2": "10.0.0.3:2301"}}

The launcher (`python -m model_deploy.launch`) or an operator writes it.  A new world has a larger
generation, and new addresses for its workers, as servers of earlier worlds keep their ports until
their processes end.  With parameter servers a worker keeps one server, and so one address.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

from model_deploy.checks import check_whole
from model_deploy.commands import parse_json, replaced_file, shortened
from model_deploy.processes.cluster_spec import Cluster

# Environment variables: path of the world file, and this worker's number.
WORLD_FILE = "MODEL_DEPLOY_WORLD"
WORKER = "MODEL_DEPLOY_WORKER"

# How old the file of a worker may be that still waits.
_WAITS_SECS = 15.0
_VERSION = 1
MOST_WORKERS = 4096
_FIELDS = ("version", "generation", "max_workers", "workers")


@dataclasses.dataclass(frozen=True)
class World:
    """The workers that train together until the next world.

    >>> world = World(1, 5, {0: "a:1", 3: "b:1"})
    >>> world.parts_of(0), world.parts_of(3)
    (range(0, 3), range(3, 5))

    Attributes:
      generation: number of the world; later worlds have larger numbers.
      max_workers: number of shares of a global batch, whatever the number of workers.
      workers: `host:port` of each worker by its number.

    Raises:
      ValueError: naming field, rule and value: for a number out of range, no worker, more than
        `max_workers`, or an address that is not `host:port` or is given twice.
    """

    generation: int
    max_workers: int
    workers: Mapping[int, str]

    def __post_init__(self) -> None:
        check_whole("generation", self.generation, 1)
        check_whole("max_workers", self.max_workers, 1)
        if self.max_workers > MOST_WORKERS:
            # A worker alone would build as many parts.
            raise ValueError(f"max_workers must be at most {MOST_WORKERS}, got {self.max_workers}")
        for worker in self.workers:
            check_whole("workers", worker, 0)
        if not 1 <= len(self.workers) <= self.max_workers:
            raise ValueError(
                f"workers must be from 1 to max_workers={self.max_workers}, got {len(self.workers)}"
            )
        object.__setattr__(self, "workers", dict(sorted(self.workers.items())))
        Cluster(tuple(self.workers.values()))

    @property
    def chief(self) -> int:
        """The worker that writes checkpoints and events: the one with the lowest number."""
        return next(iter(self.workers))

    def cluster(self, worker: int, servers: Cluster | None = None) -> Cluster:
        """Returns the cluster of this world, as a worker sees it.

        Args:
          worker: number of the worker.
          servers: with parameter servers, the cluster with all addresses, and this worker's task.

        Raises:
          ValueError: if a worker's address is not among `servers`, or this worker's is not its own.
        """
        addresses, rank = tuple(self.workers.values()), list(self.workers).index(worker)
        if servers is None:
            return Cluster(addresses, task_id=rank)
        for address in addresses:
            if address not in servers.worker_hosts:
                raise ValueError(
                    "workers must have addresses of worker_hosts with parameter servers, "
                    f"{', '.join(servers.worker_hosts)}, got {address}"
                )
        if addresses[rank] != servers.own.address:
            raise ValueError(
                f"workers must have worker {worker} at its own address, {servers.own.address}, "
                f"got {addresses[rank]}"
            )
        tasks = [list(servers.worker_hosts).index(address) for address in addresses]
        return Cluster(addresses, servers.ps_hosts, task_id=rank, server_tasks=tasks)

    def parts_of(self, worker: int) -> range:
        """Returns the shares of a global batch that a worker takes; counts differ by at most one.

        Args:
          worker: number of the worker.
        """
        rank, count = list(self.workers).index(worker), len(self.workers)
        # The first workers take one share more.
        least, more = divmod(self.max_workers, count)
        first = rank * least + min(rank, more)
        return range(first, first + least + (rank < more))


def read_world(path: str | os.PathLike[str]) -> World:
    """Reads the world file.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: naming file, field, rule and value, for an invalid file.
    """
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        return _parsed(text)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error


def write_world(path: str | os.PathLike[str], world: World) -> None:
    """Replaces the world file."""
    workers = {str(worker): address for worker, address in world.workers.items()}
    values = (_VERSION, world.generation, world.max_workers, workers)
    with replaced_file(path) as file:
        json.dump(dict(zip(_FIELDS, values, strict=True)), file)
        file.write("\n")


def ready_file(path: str | os.PathLike[str], worker: int) -> str:
    """Returns the path of the file by which a new worker asks to be let in.

    A worker of a world, which asks by it for another one, writes that world's generation into it.
    """
    return f"{os.fspath(path)}.ready-{worker}"


def asks_for_world(path: str | os.PathLike[str], worker: int, generation: int) -> bool:
    """Whether a worker asks to be let in or, as one of the world, for a world after it.

    Args:
      path: path of the world file.
      worker: the worker.
      generation: that of the world; a request from an earlier world is met by this one.
    """
    try:
        asked_in = _words(ready_file(path, worker))
    except OSError:
        return False
    return not asked_in.isdecimal() or int(asked_in) >= generation


def waiting_file(path: str | os.PathLike[str], worker: int) -> str:
    """Returns the path of the file that a worker replaces as long as it waits in a step.

    Its content is the generation of the worker's world.
    """
    return f"{os.fspath(path)}.waits-{worker}"


def all_wait(path: str | os.PathLike[str], worker: int, world: World) -> bool:
    """Notes that a worker waits in a step, and returns whether all workers of its world do.

    Args:
      path: path of the world file.
      worker: the worker, which calls this each few seconds.
      world: its world.
    """
    try:
        with replaced_file(waiting_file(path, worker)) as to:
            to.write(str(world.generation))
        own = os.stat(waiting_file(path, worker)).st_mtime  # by the clock of the folder's host
        return all(_waits(path, each, world.generation, own) for each in world.workers)
    except OSError:
        return False


def _waits(path: str | os.PathLike[str], worker: int, generation: int, now: float) -> bool:
    noted = waiting_file(path, worker)
    return os.stat(noted).st_mtime > now - _WAITS_SECS and _words(noted) == str(generation)


def _words(path: str) -> str:
    """Returns the content of a file that a worker has written."""
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read().strip()


def begun_file(path: str | os.PathLike[str]) -> str:
    """Returns the path of the file that exists once the run has begun.

    Before that, checkpoints in the train_dir are from another run.
    """
    return f"{os.fspath(path)}.begun"


def _parsed(text: str) -> World:
    try:
        found = parse_json(text)
    except ValueError as error:
        raise ValueError(f"a world must be JSON ({error}), got {shortened(text)!r}") from error
    if not isinstance(found, dict) or sorted(found) != sorted(_FIELDS):
        raise ValueError(
            f"a world must have the fields {', '.join(_FIELDS)}, got {shortened(str(found))}"
        )
    if found["version"] != _VERSION:
        raise ValueError(f"version must be {_VERSION}, got {found['version']!r}")
    return World(found["generation"], found["max_workers"], _workers(found["workers"]))


def _workers(found: Any) -> dict[int, str]:
    if not isinstance(found, dict):
        raise ValueError(f"workers must be a JSON object of addresses by number, got {found!r}")
    for name in found:
        if not (name.isascii() and name.isdecimal()):
            raise ValueError(f"workers must have whole numbers as names, got {name!r}")
    return {int(name): address for name, address in found.items()}
