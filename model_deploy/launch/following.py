"""`FollowedMachines`: hosts of a file that is read again when it changes."""

import os
import time
from collections.abc import Sequence

from model_deploy.launch.hosts import Host, read_hosts_file
from model_deploy.launch.machine import Machine
from model_deploy.launch.machines import HELLO_SECS, FarSettings, Machines

_POLL_SECS = 1.0


class FollowedMachines(Machines):
    """Hosts of a file, for workers that may come and go.

    A host that is new in the file, or was lost and is in it still when it changes, gets new places
    once it has answered.  One that is no longer in it has none.  A file with a mistake changes
    nothing.

    Args:
      hosts: the hosts of the file.
      settings: what is asked of them.
      path: the file.

    Raises:
      ValueError: as `Machines`.
    """

    def __init__(self, hosts: Sequence[Host], settings: FarSettings, path: str) -> None:
        self._path = path
        self._seen = self._state()
        self._next_look = time.monotonic() + _POLL_SECS
        self._coming: list[tuple[Machine, float]] = []
        super().__init__(hosts, settings)

    def _state(self) -> object:
        """What differs after a change."""
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size

    def changes(self) -> list[str]:
        """A line for each change of the hosts since the last call."""
        lines = self._greet_new()
        if time.monotonic() < self._next_look:
            return lines
        self._next_look = time.monotonic() + _POLL_SECS
        state = self._state()
        if state == self._seen:
            return lines
        self._seen = state
        try:
            hosts = read_hosts_file(self._path)
        except (ValueError, OSError) as error:
            return [*lines, f"the hosts stay as they were: {error}"]
        return [*lines, *self._take(hosts)]

    def _take(self, hosts: Sequence[Host]) -> list[str]:
        """Heeds what the file has now."""
        slots = {host.name: host.slots for host in hosts}
        lines = []
        for machine in list(self._machines):
            name = machine.host.name
            if machine in self._lost or name not in slots:
                if name not in slots:
                    lines.append(f"{name} is no longer one of the hosts")
                self._remove(machine)
            else:
                self._resize(machine, slots[name])
        known = {machine.host.name for machine in self._machines}
        known |= {machine.host.name for machine, _ in self._coming}
        for host in hosts:
            if host.name not in known:
                self._coming.append((self._open(host), time.monotonic() + HELLO_SECS))
        return lines

    def _remove(self, machine: Machine) -> None:
        self._resize(machine, 0)
        self._machines.remove(machine)
        self._left.append(machine)  # its ports are kept while its workers leave

    def _resize(self, machine: Machine, count: int) -> None:
        places = [place for place, at in self._places.items() if at is machine]
        for place in places[count:]:
            del self._places[place]
        self._add_places(machine, count - len(places))

    def _greet_new(self) -> list[str]:
        """Gives places to those who have answered."""
        lines = []
        for machine, deadline in list(self._coming):
            now = time.monotonic()
            try:
                self._check(machine, machine.hello(now))
            except TimeoutError:
                if now < deadline:
                    continue
                lines.append(f"{machine.host.name} does not answer")
            except (ValueError, OSError) as error:
                lines.append(f"{machine.host.name} is no host of this run: {error}")
            else:
                lines.append(f"{machine.host.name} is a host now")
                self._machines.append(machine)
                self._add_places(machine, machine.host.slots)
            self._coming.remove((machine, deadline))
            if machine not in self._machines:
                machine.close()
        return lines

    def keep_alive(self) -> None:
        """Lets hosts, those that are yet to answer too, and tasks hear of the launcher."""
        super().keep_alive()
        for machine, _ in tuple(self._coming):
            machine.keep_alive()

    def close(self) -> None:
        """Ends the connections, and gives the ports back."""
        super().close()
        for machine, _ in self._coming:
            machine.close()
