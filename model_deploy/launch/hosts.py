"""The hosts of a launch, and how many workers each takes: `-H`, or a file that may change."""

import ipaddress
import re
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_NAME = re.compile(r"(?:[\w.-]+@)?[\w.-]+", re.ASCII)
_THIS_MACHINE = ("localhost", "127.0.0.1")


class Host(NamedTuple):
    """A machine that `ssh` reaches.

    Attributes:
      name: as `ssh` takes it: a name, an address, a name of the user's configuration, `user@name`.
      slots: how many workers it takes.
    """

    name: str
    slots: int

    @property
    def is_this_machine(self) -> bool:
        """Whether its name is that of this machine."""
        return self.name in (*_THIS_MACHINE, socket.gethostname())


def parse_hosts(text: str) -> list[Host]:
    """The hosts of `-H`; the same name twice is not yet a mistake, see `check_distinct`.

    >>> parse_hosts("node1:2,me@node2,[fd00::7]:4")
    [Host(name='node1', slots=2), Host(name='me@node2', slots=1), Host(name='fd00::7', slots=4)]

    Raises:
      ValueError: naming rule and value, for a name that is none, or slots below 1.
    """
    return [_host("-H", entry, entry.strip(), text) for entry in text.split(",")]


def read_hosts_file(path: str) -> list[Host]:
    """The hosts of a file: `node1:2` or, as MPI writes it, `node1 slots=2`, one a line.

    Raises:
      ValueError: naming file, rule and value, as `parse_hosts` and `check_distinct`.
      OSError: if the file cannot be read.
    """
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    entries = [entry for entry in (line.partition("#")[0].strip() for line in lines) if entry]
    if not entries:
        raise ValueError(f"hosts_file must name at least one host, got none in {path}")
    found = [_host(f"hosts_file {path}", each, _plain(each), each) for each in entries]
    check_distinct(f"hosts_file {path}", found)
    return found


def check_distinct(field: str, hosts: Iterable[Host]) -> None:
    """Raises ValueError, naming the field, if a host is given twice."""
    names: set[str] = set()
    for host in hosts:
        if host.name in names:
            raise ValueError(f"{field} must name each host once, got {host.name!r} twice")
        names.add(host.name)


def _plain(entry: str) -> str:
    return re.sub(r"\s+(?:slots|max_slots)=", ":", entry, count=1)


def _host(field: str, shown: str, entry: str, text: str) -> Host:
    name, slots = entry, "1"
    if match := re.fullmatch(r"(\[[^\]]*\]|[^:]*):(.*)", entry):
        name, slots = match.groups()
    if not slots.isdecimal() or int(slots) < 1:
        raise ValueError(f"the slots of {field} must be an integer of at least 1, got {text!r}")
    if name.startswith("[") and name.endswith("]") and _is_ipv6(name[1:-1]):
        return Host(name[1:-1], int(slots))
    if not _NAME.fullmatch(name) or name.startswith("-"):
        raise ValueError(f"{field} must have hosts such as node1:2, got {shown!r}")
    return Host(name, int(slots))


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
