"""Arranges devices in the picture, and words what is on each."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from model_deploy.describing.report import DeviceRow, TransferRow

MARGIN, GAP = 28, 24
BOX_WIDTH = 268  # wide enough for two arrows in the middle with their numbers beside them
CHIP, CHIP_GAP, TITLE = 26, 6, 30


class Box(NamedTuple):
    """A device in the picture, with its row, left edge and right edge."""

    device: DeviceRow
    row: int
    left: float
    right: float

    @property
    def chips(self) -> list[tuple[str, str]]:
        """(CSS class, words) for each thing on the device."""
        device = self.device
        found = [("device", "inputs")] if device.input_ops else []
        if device.variables:
            found.append(
                ("variables", f"{device.variables} variables, {size_words(device.variable_bytes)}")
            )
        if device.updates:
            found.append(("update", f"{device.updates} updates of variables"))
        names = device.stages or ", ".join(f"clone {number}" for number in device.clones)
        found += [("clone", name) for name in names.split(", ") if name]
        if device.collective_bytes:
            found.append(("update", f"all-reduce of {size_words(device.collective_bytes)}"))
        return found

    @property
    def height(self) -> float:
        return TITLE + len(self.chips) * (CHIP + CHIP_GAP) + 8


def arrange(devices: Sequence[DeviceRow]) -> dict[str, Box]:
    """Assigns a row and edges to each device; each process has its own columns.

    Boxes of a shorter row are wider.
    """
    servers = [each for each in devices if "/job:ps" in each.device]
    processes: dict[str, list[DeviceRow]] = defaultdict(list)
    for each in devices:
        if each not in servers:
            processes[process_of(each.device)].append(each)
    further = {
        name: [each for each in own if not _is_host(each)] for name, own in processes.items()
    }
    columns = {name: max(1, len(own)) for name, own in further.items()}
    wanted = max(sum(columns.values()), len(servers))
    scale = wanted / max(1, sum(columns.values()))
    total = wanted * (BOX_WIDTH + GAP)
    boxes = _row(servers, 0, MARGIN, total)
    left = float(MARGIN)
    for name, own in processes.items():
        width = columns[name] * scale * (BOX_WIDTH + GAP)
        boxes += _row([each for each in own if _is_host(each)], 1, left, width)
        boxes += _row(further[name], 2, left, width)
        left += width
    return {box.device.device: box for box in boxes}


def _row(devices: Sequence[DeviceRow], row: int, left: float, width: float) -> list[Box]:
    each = width / max(1, len(devices))
    return [
        Box(device, row, left + i * each, left + (i + 1) * each - GAP)
        for i, device in enumerate(devices)
    ]


def process_of(device: str) -> str:
    """Returns the part of a device's name that names its process; '' if it names none."""
    return re.sub(r"/?device:.*", "", device)


def process_name(process: str) -> str:
    """Returns the name of a process in the picture.

    >>> process_name("/job:worker/task:1"), process_name("")
    ('worker 1', 'this process')
    """
    if not process:
        return "this process"
    parts = dict(part.split(":", 1) for part in process.split("/") if ":" in part)
    return " ".join(parts[key] for key in ("job", "task") if key in parts) or process


def _is_host(row: DeviceRow) -> bool:
    return row.device.endswith("CPU:0")


def amount_words(edge: TransferRow) -> list[str]:
    """Returns in words the bytes of a transfer."""
    known = edge.tensors - edge.unknown
    words = [size_words(edge.known_bytes)] if known else []
    return words + ([f"{edge.unknown} of unknown size"] if edge.unknown else [])


def size_words(num_bytes: int) -> str:
    """Formats bytes in decimal units with three figures.

    >>> size_words(24), size_words(37_600_000)
    ('24 B', '37.6 MB')
    """
    size, units = float(num_bytes), ["B", "kB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.3g} {units[0]}"
