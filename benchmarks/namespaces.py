"""A network of slow links on this machine: namespaces that a bridge joins.  Linux, as root."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# A queue that holds what a link sends in so many milliseconds; more is dropped.
_QUEUE = ("burst", "256kb", "latency", "50ms")


class Host(NamedTuple):
    """A namespace with one link.

    Attributes:
      address: its IP address.
      within: words before a command that is to run in it.
      interface: this machine's end of the link, which receives what the host sends.
      far_interface: the host's end of it.
    """

    address: str
    within: Sequence[str]
    interface: str
    far_interface: str


def missing() -> str | None:
    """What this machine lacks for `slow_network`, in a few words; None if nothing."""
    if not sys.platform.startswith("linux"):
        return "network namespaces need Linux"
    if os.geteuid() != 0:
        return "network namespaces need root"
    lacking = [name for name in ("ip", "tc") if shutil.which(name) is None]
    return f"{' and '.join(lacking)} of iproute2 must be installed" if lacking else None


@contextlib.contextmanager
def slow_network(num_hosts: int, megabits: int) -> Iterator[list[Host]]:
    """Hosts, each with a link of so many megabits per second in each direction to a bridge.

    Raises:
      OSError: if the network cannot be made; with what the command said.
    """
    remove_leftovers()
    prefix = f"md{os.getpid()}"
    bridge = f"{prefix}br"
    with contextlib.ExitStack() as stack:
        _run("ip", "link", "add", bridge, "type", "bridge")
        stack.callback(_run, "ip", "link", "del", bridge)
        _run("ip", "link", "set", bridge, "up")
        yield [_host(stack, prefix, bridge, i, megabits) for i in range(num_hosts)]


def set_rate(hosts: Sequence[Host], megabits: int) -> None:
    """Lets the links of hosts have another rate, in each direction.

    Raises:
      OSError: if it cannot be set; with what the command said.
    """
    limit = ("root", "tbf", "rate", f"{megabits}mbit", *_QUEUE)
    for host in hosts:
        _run("tc", "qdisc", "replace", "dev", host.interface, *limit)
        _run(*host.within, "tc", "qdisc", "replace", "dev", host.far_interface, *limit)


def remove_leftovers() -> None:
    """Removes the networks of processes that were killed before they could do so."""
    for kind, listed in (("netns", _run("ip", "netns", "list")), ("link", _bridges())):
        for name, pid in re.findall(r"\b(md(\d+)(?:n\d+|br))\b", listed):
            if not pathlib.Path(f"/proc/{pid}").exists():
                _run("ip", kind, "del", name)


def _bridges() -> str:
    return _run("ip", "-brief", "link", "show", "type", "bridge")


def _host(stack: contextlib.ExitStack, prefix: str, bridge: str, index: int, megabits: int) -> Host:
    name, near, far = (f"{prefix}{kind}{index}" for kind in ("n", "a", "b"))
    host = Host(f"10.213.77.{index + 1}", ("ip", "netns", "exec", name), near, far)
    _run("ip", "netns", "add", name)
    stack.callback(_run, "ip", "netns", "del", name)
    _run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
    # A namespace ends some time after it is deleted, and would end its link only then.
    stack.callback(_run, "ip", "link", "del", near)
    _run("ip", "link", "set", near, "master", bridge, "up")
    _run(*host.within, "ip", "address", "add", f"{host.address}/24", "dev", far)
    _run(*host.within, "ip", "link", "set", far, "up")
    _run(*host.within, "ip", "link", "set", "lo", "up")
    set_rate([host], megabits)
    return host


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
