"""`Machines`: where the tasks of a launch are, if they are on hosts that `ssh` reaches."""

import contextlib
import ipaddress
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from model_deploy.launch.far_task import FarTask
from model_deploy.launch.hosts import Host
from model_deploy.launch.machine import Machine
from model_deploy.launch.output import TaskOutput
from model_deploy.launch.ssh import Connection
from model_deploy.launch.task import EVALUATOR, TaskProcess, task_gpus
from model_deploy.launch.this_machine import ThisMachine
from model_deploy.processes import visible_gpus

# So many connections a host accepts at a time before it lets somebody in; sshd drops more than ten.
_MOST_CONNECTING = 4
# Enough for Python to start on a machine that has answered.
HELLO_SECS = 60.0


class FarSettings(NamedTuple):
    """What is asked of hosts.

    Attributes:
      connection: how they are reached.
      network: the network in which tasks have their addresses; '' for that of the connection.
      ports: the first and the last port of tasks; zeros for any.
      shared: a folder that all must see beside the launcher's current one; '' for none.
      divide_gpus: whether the workers of a host divide its GPUs; else each sees all.
    """

    connection: Connection
    network: str = ""
    ports: tuple[int, int] = (0, 0)
    shared: str = ""
    divide_gpus: bool = True


class Machines(ThisMachine):
    """Hosts that `ssh` reaches, on each as many places of workers as it has slots.

    Parameter servers take no slot: they are dealt out to the hosts in turn.  The evaluator is on
    the first host.

    Args:
      hosts: the hosts.
      settings: what is asked of them.

    Raises:
      ValueError: naming all hosts that do not answer, and why; a host that lacks the launcher's
        folder, is named twice, or has an address that the others cannot reach.
    """

    def __init__(self, hosts: Sequence[Host], settings: FarSettings) -> None:
        super().__init__()
        self._settings = settings
        self._machines: list[Machine] = []  # in the order of their places
        self._lost: list[Machine] = []
        self._left: list[Machine] = []
        self._num_places = 0
        self._places: dict[str, Machine] = {}  # of workers
        self._tasks: list[FarTask] = []
        self._closed = threading.Event()
        # A folder of the same name on another disk does not have it.
        self._token = (
            tempfile.NamedTemporaryFile(dir=settings.shared, prefix="seen-by-all-")  # noqa: SIM115
            if settings.shared
            else None
        )
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            threading.Thread(target=self._stay_in_touch, daemon=True).start()
            for host in hosts:
                self._machines.append(self._open(host))  # one by one: `close` then knows of each
            self._greet(time.monotonic() + HELLO_SECS)
            for machine in self._machines:
                self._add_places(machine, machine.host.slots)
            stack.pop_all()

    def _open(self, host: Host) -> Machine:
        source = Path(visible_gpus.__file__).read_text(encoding="utf-8")
        far = {
            "must_see": [os.getcwd(), *([self._token.name] if self._token else [])],
            "network": self._settings.network,
            "ports": self._settings.ports,
            "visible_gpus": source,
        }
        return Machine(host, self._settings.connection, far)

    def _greet(self, deadline: float) -> None:
        """Waits for all hosts."""
        silent = []
        for machine in self._machines:
            try:
                self._check(machine, machine.hello(deadline))
            except OSError as error:
                silent.append(f"{machine.host.name} ({error})")
        if silent:
            raise ValueError(f"hosts must answer, got no answer of {', '.join(silent)}")

    def _check(self, machine: Machine, answer: Mapping[str, Any]) -> None:
        """Checks what a host says of itself."""
        name, network = machine.host.name, self._settings.network
        if not machine.address:
            raise ValueError(f"network must be one that each host is in, got {network} for {name}")
        if answer["missing"]:
            path = answer["missing"][0]
            seen = self._settings.shared if self._token and path == self._token.name else path
            raise ValueError(f"hosts must see the launcher's folder {seen}, got {name} without it")
        for other in self._machines:
            if other is machine or not other.address:
                continue
            if other.address == machine.address:
                raise ValueError(
                    f"hosts must be named once each, got {other.host.name} and {name}, both "
                    f"{machine.address}"
                )
            if ipaddress.ip_address(machine.address).is_loopback:
                raise ValueError(
                    f"hosts must be reached at addresses that others reach, got {machine.address} "
                    f"for {name}: name its address, or a network"
                )

    def _add_places(self, machine: Machine, count: int) -> None:
        for _ in range(count):
            self._places[f"worker {self._num_places}"] = machine
            self._num_places += 1

    def addresses(self, num_workers: int, num_ps: int) -> list[str]:
        """`host:port` for each worker, then for each ps.

        Raises:
          ValueError: if a host has too few free ports in the range.
          OSError: if a host is lost.
        """
        places = [f"worker {i}" for i in range(num_workers)] + [f"ps {i}" for i in range(num_ps)]
        return self._addresses(places, Machine.addresses)

    def new_addresses(self, places: Sequence[str]) -> Sequence[str]:
        """See `ThisMachine.new_addresses`."""
        return self._addresses(places, Machine.addresses_in_world)

    def _addresses(self, places: Sequence[str], ask: Any) -> list[str]:
        at = [self._at(place) for place in places]
        found: dict[int, Iterator[str]] = {}
        for machine in dict.fromkeys(at):
            try:
                found[id(machine)] = iter(ask(machine, at.count(machine)))
            except OSError as error:
                self._lost.append(machine)
                raise ConnectionError(f"{machine.host.name} is lost: {error}") from error
        return [next(found[id(machine)]) for machine in at]

    def visible_gpus(
        self, num_workers: int, num_ps: int, *, evaluator: bool = False
    ) -> dict[str, str | None]:
        """`CUDA_VISIBLE_DEVICES` of each place: the workers of a host divide its GPUs."""
        visible: dict[str, str | None] = {}
        for machine in self._machines:
            workers = self._workers_on(machine, num_workers)
            servers = [f"ps {i}" for i in range(num_ps) if self._at(f"ps {i}") is machine]
            gpus = machine.gpus if self._settings.divide_gpus else None
            first = evaluator and machine is self._machines[0]
            each = task_gpus(len(workers) or 1, len(servers), gpus, evaluator=first)
            values = iter(each.values())
            ours = workers or [""]
            visible |= dict(zip([*ours, *servers, *[EVALUATOR] * first], values, strict=True))
        return visible

    def worker_places(self, most: int) -> list[str]:
        """Places on hosts that are not lost, at most so many."""
        return [place for place, at in self._places.items() if at not in self._lost][:most]

    def workers_beside(self, place: str, most: int) -> list[str]:
        """Places of workers on the host of a place, of at most so many workers in all."""
        return self._workers_on(self._at(place), most)

    def _workers_on(self, machine: Machine, most: int) -> list[str]:
        return [each for each in self.worker_places(most) if self._at(each) is machine]

    def _at(self, place: str) -> Machine:
        if place in self._places:
            return self._places[place]
        job, _, index = place.partition(" ")
        return self._machines[int(index) % len(self._machines) if job == "ps" else 0]

    def new_task(
        self,
        place: str,
        name: str,
        tf_config: str | None,
        output: TaskOutput,
        *,
        gpus: str | None,
        more: Mapping[str, str] | None,
    ) -> TaskProcess:
        """A task on the host of a place, not started."""
        host, connection = self._at(place).host.name, self._settings.connection
        task = FarTask(host, connection, name, tf_config, output, visible_gpus=gpus, more=more)
        self._tasks.append(task)
        return task

    def may_start(self, task: TaskProcess) -> bool:
        """Whether its host is not busy with other connections."""
        host = getattr(task, "host", None)
        connecting = sum(each.is_connecting for each in self._tasks if each.host == host)
        return connecting < _MOST_CONNECTING

    def newly_lost(self) -> list[str]:
        """A line for each host that answered before, and does not now."""
        lost = [each for each in self._machines if each not in self._lost and not each.answers()]
        self._lost += lost
        for task in self._tasks:
            if any(machine.host.name == task.host for machine in lost):
                task.cut_off()
        return [f"{each.host.name} does not answer" for each in lost]

    def _stay_in_touch(self) -> None:
        # A thread: the launcher may wait for its terminal.
        while not self._closed.wait(self._settings.connection.silence_secs / 6):
            self.keep_alive()

    def keep_alive(self) -> None:
        """Lets hosts and tasks hear of the launcher."""
        for machine in (*self._machines, *self._left):
            machine.keep_alive()
        for task in tuple(self._tasks):
            task.keep_alive()

    def close(self) -> None:
        """Ends the connections, and gives the ports back."""
        self._closed.set()
        for machine in (*self._machines, *self._left):
            machine.close()
        if self._token is not None:
            self._token.close()
