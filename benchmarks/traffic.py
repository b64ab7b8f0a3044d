"""Bytes on the loopback interface, over which the processes of a benchmark talk."""

import pathlib
import re

_COUNTERS = "/proc/net/dev"


def parse_loopback_bytes(counters: str) -> int:
    """Bytes received by `lo` in the text of /proc/net/dev.

    Raises:
      ValueError: if there is no such interface.
    """
    found = re.search(r"^\s*lo:\s*(\d+)", counters, re.MULTILINE)
    if found is None:
        raise ValueError(f"counters must have a line for lo, got {counters!r}")
    return int(found.group(1))


def loopback_bytes() -> int:
    """Bytes that went over the loopback since the machine was started, those of others too."""
    return parse_loopback_bytes(pathlib.Path(_COUNTERS).read_text())
