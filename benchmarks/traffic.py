"""Bytes on a network interface, such as the loopback, over which a benchmark's processes talk."""

import pathlib
import re

_COUNTERS = "/proc/net/dev"


def parse_received_bytes(counters: str, interface: str) -> int:
    """Bytes received by an interface in the text of /proc/net/dev.

    Raises:
      ValueError: if there is no such interface.
    """
    found = re.search(rf"^\s*{re.escape(interface)}:\s*(\d+)", counters, re.MULTILINE)
    if found is None:
        raise ValueError(f"counters must have a line for {interface}, got {counters!r}")
    return int(found.group(1))


def received_bytes(interface: str) -> int:
    """Bytes that an interface received since it was made."""
    return parse_received_bytes(pathlib.Path(_COUNTERS).read_text(), interface)


def loopback_bytes() -> int:
    """Bytes that went over the loopback since the machine was started, those of others too."""
    return received_bytes("lo")
