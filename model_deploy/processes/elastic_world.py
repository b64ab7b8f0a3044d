"""Worlds: which workers of an elastic run there are for now, in a file that is replaced as a whole.

    {"version": 1, "generation": 2, "max_workers": 3,
     "workers": {"0": "10.0.0.1:2301", "2": "10.0.0.3:2301"}}

Whoever knows who lives writes it: `python -m model_deploy.launch`, or an operator.  A new world has
a larger generation, and addresses that none of its workers has had before, as the servers of
worlds that are over keep their ports until their processes end.  With parameter servers a worker
has one server, and so one address, for life.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

from model_deploy.checks import check_whole
from model_deploy.commands import replaced_file
from model_deploy.processes.cluster_spec import Cluster

# Environment variables: path of the file, and the number of the worker that a process is.
WORLD_FILE = "MODEL_DEPLOY_WORLD"
WORKER = "MODEL_DEPLOY_WORKER"

_VERSION = 1
_FIELDS = ("version", "generation", "max_workers", "workers")


@dataclasses.dataclass(frozen=True)
class World:
    """The workers that train together, until there is another world.

    >>> world = World(1, 5, {0: "a:1", 3: "b:1"})
    >>> world.parts_of(0), world.parts_of(3)
    (range(0, 3), range(3, 5))

    Attributes:
      generation: number of the world; that of a later one is larger.
      max_workers: into how many shares a global batch is divided, whoever takes them.
      workers: `host:port` of each worker by its number.

    Raises:
      ValueError: naming field, rule and value: for a number out of its range, no worker, more
        than `max_workers`, or an address that is not `host:port` or stands there twice.
    """

    generation: int
    max_workers: int
    workers: Mapping[int, str]

    def __post_init__(self) -> None:
        check_whole("generation", self.generation, 1)
        check_whole("max_workers", self.max_workers, 1)
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
        """The number of the worker that writes checkpoints and events: the least."""
        return next(iter(self.workers))

    def cluster(self, worker: int, servers: Cluster | None = None) -> Cluster:
        """The cluster of this world, as the worker of that number sees it.

        Args:
          worker: one of `workers`.
          servers: with parameter servers, the cluster of all addresses that there are, and the
            task of this worker in it.

        Raises:
          ValueError: if a worker has an address that is not one of `servers`, or this one not its
            own.
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
        """The shares of a global batch that a worker takes: as many as others, or one more.

        Args:
          worker: one of `workers`.
        """
        rank, count = list(self.workers).index(worker), len(self.workers)
        # From the front on, the first workers have one more.
        least, more = divmod(self.max_workers, count)
        first = rank * least + min(rank, more)
        return range(first, first + least + (rank < more))


def read_world(path: str | os.PathLike[str]) -> World:
    """The world in a file.

    Raises:
      FileNotFoundError: if there is none.
      ValueError: naming file, field, rule and value, if it is not of that form.
    """
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        return _parsed(text)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error


def write_world(path: str | os.PathLike[str], world: World) -> None:
    """Puts a world in the place of the one in the file."""
    workers = {str(worker): address for worker, address in world.workers.items()}
    values = (_VERSION, world.generation, world.max_workers, workers)
    with replaced_file(path) as file:
        json.dump(dict(zip(_FIELDS, values, strict=True)), file)
        file.write("\n")


def ready_file(path: str | os.PathLike[str], worker: int) -> str:
    """The file beside that of the world by which a new worker says that it can be let in.

    One that is in the world, but has lost its connection to a parameter server, asks by it for
    another world.
    """
    return f"{os.fspath(path)}.ready-{worker}"


def begun_file(path: str | os.PathLike[str]) -> str:
    """The file beside that of the world that is there once the run has begun.

    Before that, checkpoints in its folder are those of another run.
    """
    return f"{os.fspath(path)}.begun"


def _parsed(text: str) -> World:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"a world must be JSON ({error}), got {text!r}") from error
    if not isinstance(found, dict) or sorted(found) != sorted(_FIELDS):
        raise ValueError(f"a world must have the fields {', '.join(_FIELDS)}, got {found!r}")
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
