"""Bytes on a network interface, such as the loopback, over which a benchmark's processes talk."""

import pathlib
import re

_COUNTERS = "/proc/net/dev"
# Columns of an interface's line.
_RECEIVED, _SENT = 0, 8


def parse_received_bytes(counters: str, interface: str) -> int:
    """Bytes received by an interface in the text of /proc/net/dev.

    Raises:
      ValueError: if there is no such interface.
    """
    return _parse(counters, interface, _RECEIVED)


def parse_sent_bytes(counters: str, interface: str) -> int:
    """Bytes sent by an interface in the text of /proc/net/dev.

    Raises:
      ValueError: if there is no such interface.
    """
    return _parse(counters, interface, _SENT)


def _parse(counters: str, interface: str, column: int) -> int:
    found = re.search(rf"^\s*{re.escape(interface)}:\s*([\d ]+)", counters, re.MULTILINE)
    if found is None:
        raise ValueError(f"counters must have a line for {interface}, got {counters!r}")
    return int(found.group(1).split()[column])


def received_bytes(interface: str) -> int:
    """Bytes that an interface received since it was made."""
    return parse_received_bytes(pathlib.Path(_COUNTERS).read_text(), interface)


def link_bytes(interface: str) -> tuple[int, int]:
    """Bytes that an interface received and sent since it was made."""
    counters = pathlib.Path(_COUNTERS).read_text()
    return parse_received_bytes(counters, interface), parse_sent_bytes(counters, interface)


def loopback_bytes() -> int:
    """Bytes that went over the loopback since the machine was started, those of others too."""
    return received_bytes("lo")
