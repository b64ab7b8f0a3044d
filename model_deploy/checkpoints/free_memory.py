"""`free_memory`: how much memory this process may still take."""

from collections.abc import Iterator
from pathlib import Path

_ANY = Path("/")


def free_memory(root: Path = _ANY) -> int | None:
    """Returns the bytes that this process may still take; None where the system does not say.

    The least of what the machine has available and what each control group of this process has
    left, in which the files that the kernel keeps in memory count as free.

    Args:
      root: where the folders `proc` and `sys` of Linux are.
    """
    left = [*_of_machine(root), *_of_groups(root)]
    return min(left, default=None)


def _of_machine(root: Path) -> Iterator[int]:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _of_groups(root: Path) -> Iterator[int]:
    """Yields what is left of each limit, of control groups of version 2, or else of version 1."""
    top = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, group = line.split(":", 2)
        if controllers == "memory":
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _left(top / "memory", group, *names)
        elif not controllers:
            yield from _left(top, group, "memory.max", "memory.current", "inactive_file")


def _left(top: Path, group: str, limit: str, usage: str, cached: str) -> Iterator[int]:
    folder = top / group.lstrip("/")
    # In a container the group's folder may not be there, and the outermost one be its own.
    for each in (folder, *folder.parents):
        most, used = _lines(each / limit), _lines(each / usage)
        if most and used and most[0].isdigit():
            kept = [int(x.split()[1]) for x in _lines(each / "memory.stat") if x.startswith(cached)]
            yield int(most[0]) - int(used[0]) + sum(kept[:1])
        if each == top:
            return


def _lines(path: Path) -> list[str]:
    """Returns the lines of a file; [] if it cannot be read."""
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
