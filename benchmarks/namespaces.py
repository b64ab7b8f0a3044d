"""A network of slow links on this machine: namespaces that a bridge joins.  Linux, as root."""

import contextlib
import os
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
    """

    address: str
    within: Sequence[str]
    interface: str


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
    prefix = f"md{os.getpid() % 100_000}"
    bridge = f"{prefix}br"
    with contextlib.ExitStack() as stack:
        _run("ip", "link", "add", bridge, "type", "bridge")
        stack.callback(_run, "ip", "link", "del", bridge)
        _run("ip", "link", "set", bridge, "up")
        yield [_host(stack, prefix, bridge, i, megabits) for i in range(num_hosts)]


def _host(stack: contextlib.ExitStack, prefix: str, bridge: str, index: int, megabits: int) -> Host:
    name, near, far = (f"{prefix}{kind}{index}" for kind in ("n", "a", "b"))
    host = Host(f"10.213.77.{index + 1}", ("ip", "netns", "exec", name), near)
    _run("ip", "netns", "add", name)
    stack.callback(_run, "ip", "netns", "del", name)  # and the link with it
    _run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
    _run("ip", "link", "set", near, "master", bridge, "up")
    _run(*host.within, "ip", "address", "add", f"{host.address}/24", "dev", far)
    _run(*host.within, "ip", "link", "set", far, "up")
    _run(*host.within, "ip", "link", "set", "lo", "up")
    limit = ("root", "tbf", "rate", f"{megabits}mbit", *_QUEUE)
    _run("tc", "qdisc", "add", "dev", near, *limit)
    _run(*host.within, "tc", "qdisc", "add", "dev", far, *limit)
    return host


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
