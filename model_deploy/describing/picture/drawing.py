"""`draw_deployment`: draws the picture from top to bottom."""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from model_deploy.commands import replaced_file
from model_deploy.describing.picture.arranging import (
    BOX_WIDTH,
    CHIP,
    CHIP_GAP,
    MARGIN,
    TITLE,
    Box,
    amount_words,
    arrange,
    process_name,
    process_of,
)
from model_deploy.describing.picture.svg import arrow_heads, rectangle, style, text_at
from model_deploy.describing.report import ANY_DEVICE, DeviceRow, PlacementReport, TransferRow

_BETWEEN_ROWS = 76  # the length of an arrow
_LANE = 34  # height of an arrow between boxes of one row
_LINE = 20
_MOST_LANES = 8


def draw_deployment(report: PlacementReport, path: str | os.PathLike[str]) -> str:
    """Draws devices, what is on each, and the bytes moved between them in a step, as SVG.

    Parameter servers are at the top, then the CPUs of the other processes, then their other
    devices.  Blue arrows lead down, orange ones up, green ones between devices of a row; other
    transfers are lines of text below.  Bytes are those of known shapes; tensors whose shape is
    known only when the graph runs are counted as `of unknown size`.

        draw_deployment(describe(model), "deployment.svg")

    Args:
      report: what `describe` returned for a model or a graph.
      path: the file to write, on any file system of TensorFlow; an existing one is replaced.

    Returns:
      The path.

    Raises:
      ValueError: if the path does not end in `.svg`, or the report has no device.
      OSError: if the file cannot be written.
    """
    if not os.fspath(path).lower().endswith(".svg"):
        raise ValueError(f"path must end in .svg, got {os.fspath(path)}")
    devices = [row for row in report.devices if row.device != ANY_DEVICE]
    if not devices:
        raise ValueError(f"report must have a device, got {len(report.devices)} row(s) without one")
    picture = _Picture(devices, report)
    with replaced_file(path) as file:
        file.write(picture.text())
    return os.fspath(path)


class _Picture:
    """The parts of the picture, added from top to bottom."""

    def __init__(self, devices: Sequence[DeviceRow], report: PlacementReport) -> None:
        self._report = report
        self._boxes = arrange(devices)
        self._width = max(box.right for box in self._boxes.values()) + MARGIN
        self._parts: list[str] = []
        rows = sorted({box.row for box in self._boxes.values()})
        row_of = {device: box.row for device, box in self._boxes.items()}
        lanes = [each for each in report.transfers if row_of[each.source] == row_of[each.target]]
        lanes = lanes[:_MOST_LANES]
        arrows = [edge for edge in report.transfers if self._is_arrow(edge, rows)]
        top: dict[int, float] = {}
        bottom: dict[int, float] = {}
        y = float(MARGIN)
        for row in rows:
            boxes = [box for box in self._boxes.values() if box.row == row]
            top[row] = y + _LINE
            bottom[row] = top[row] + max(box.height for box in boxes)
            own = [edge for edge in lanes if self._boxes[edge.source].row == row]
            y = bottom[row] + len(own) * _LANE + _BETWEEN_ROWS
            for lane, edge in enumerate(own):
                self._add_lane(edge, bottom[row], bottom[row] + (lane + 0.6) * _LANE)
        frames = self._frames(top, bottom)
        for box in self._boxes.values():
            self._add_box(box, top[box.row], bottom[box.row])
        for edge in arrows:
            self._add_arrow(edge, top, bottom)
        self._height = y - _BETWEEN_ROWS + MARGIN
        drawn = {id(edge) for edge in (*lanes, *arrows)}
        self._add_notes(edge for edge in report.transfers if id(edge) not in drawn)
        self._parts = frames + self._parts

    def text(self) -> str:
        """Returns the SVG file."""
        width, height = round(self._width), round(self._height)
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                f'width="{width}" height="{height}" role="img" aria-labelledby="title desc">',
                '  <title id="title">Devices, and what moves between them in a step</title>',
                f'  <desc id="desc">{escape(self._description())}</desc>',
                style(),
                arrow_heads(),
                f'  <rect class="page" width="{width}" height="{height}" rx="8"/>',
                *self._parts,
                "</svg>\n",
            ]
        )

    def _is_arrow(self, edge: TransferRow, rows: Sequence[int]) -> bool:
        """Whether the boxes of a transfer are in adjacent rows and overlap horizontally."""
        source, target = self._boxes[edge.source], self._boxes[edge.target]
        apart = abs(rows.index(source.row) - rows.index(target.row))
        return apart == 1 and min(source.right, target.right) - max(source.left, target.left) > 0

    def _frames(self, top: dict[int, float], bottom: dict[int, float]) -> list[str]:
        """Returns a dashed box around the devices of each process."""
        members = defaultdict(list)
        for box in self._boxes.values():
            members[process_of(box.device.device)].append(box)
        parts = []
        for process, boxes in members.items():
            left, right = min(box.left for box in boxes), max(box.right for box in boxes)
            first = min(top[box.row] for box in boxes) - _LINE - 6
            last = max(bottom[box.row] for box in boxes) + 10
            parts.append(rectangle("process", left - 10, first, right - left + 20, last - first))
            parts.append(text_at(process_name(process), left, first + 18, "strong"))
        return parts

    def _add_box(self, box: Box, top: float, bottom: float) -> None:
        width = box.right - box.left
        self._parts.append(rectangle("device", box.left, top, width, bottom - top))
        name = box.device.device.rsplit("device:", 1)[-1]
        title = f"{name}: {box.device.ops:,} ops"
        self._parts.append(text_at(title, box.left + 12, top + 20, "small"))
        y = top + TITLE
        for kind, words in box.chips:
            chip = min(width - 24, BOX_WIDTH - 24)
            self._parts.append(rectangle(kind, box.left + 12, y, chip, CHIP))
            self._parts.append(text_at(words, box.left + 20, y + 18, "small"))
            y += CHIP + CHIP_GAP

    def _add_arrow(
        self, edge: TransferRow, top: dict[int, float], bottom: dict[int, float]
    ) -> None:
        """Adds an arrow between rows, where the two boxes overlap; a downward one on the left."""
        source, target = self._boxes[edge.source], self._boxes[edge.target]
        left, right = max(source.left, target.left), min(source.right, target.right)
        down = source.row < target.row
        # In the middle, away from the names of processes, with the words on the outer sides.
        x = (left + right) / 2 + (-12 if down else 12)
        kind = "value" if down else "gradient"
        upper, lower = (source, target) if down else (target, source)
        first, last = bottom[upper.row], top[lower.row]
        start, end = (first, last) if down else (last, first)
        self._add_path(kind, f"M{x:g} {start:g} V{end:g}")
        middle = (first + last) / 2
        for line, words in enumerate(amount_words(edge)):
            place = x + (-9 if down else 9), middle - 8 + 16 * line
            self._parts.append(text_at(words, *place, "small", ends_there=down))

    def _add_lane(self, edge: TransferRow, bottom: float, y: float) -> None:
        """Adds an arrow below a row, from box to box."""
        source, target = self._boxes[edge.source], self._boxes[edge.target]
        forward = source.left < target.left
        start = source.right - 60 if forward else source.left + 60
        end = target.left + 20 if forward else target.right - 20
        self._add_path("call", f"M{start:g} {bottom:g} V{y:g} H{end:g} V{bottom:g}")
        words = ", ".join(amount_words(edge))
        # On the left, as deeper lanes mostly belong to boxes on the right.
        self._parts.append(text_at(words, min(start, end) - 9, y + 5, "small", ends_there=True))

    def _add_path(self, kind: str, path: str) -> None:
        self._parts.append(f'  <path class="{kind}" d="{path}" marker-end="url(#{kind})"/>')

    def _add_notes(self, rest: Iterable[TransferRow]) -> None:
        """Adds lines of text at the end: transfers without an arrow, ops without a device."""
        lines = [
            f"{edge.source} to {edge.target}: {', '.join(amount_words(edge))}" for edge in rest
        ]
        anywhere = [row.ops for row in self._report.devices if row.device == ANY_DEVICE]
        lines += [f"{ops:,} ops go where TensorFlow puts them" for ops in anywhere]
        for line in lines:
            self._parts.append(text_at(line, MARGIN, self._height, "small"))
            self._height += _LINE
            self._width = max(self._width, 2 * MARGIN + 8 * len(line))

    def _description(self) -> str:
        devices = [
            f"{box.device.device}: {', '.join([w for _, w in box.chips] or ['other ops'])}"
            for box in self._boxes.values()
        ]
        moves = [
            f"{edge.source} to {edge.target}: {', '.join(amount_words(edge))}"
            for edge in self._report.transfers
        ]
        moved = f"In a step: {'; '.join(moves)}." if moves else "Nothing moves between devices."
        return f"{'; '.join(devices)}. {moved}"
