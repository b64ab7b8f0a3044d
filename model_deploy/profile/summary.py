"""Summarizes where the time of steps goes, by device and by type of op."""

import collections
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from model_deploy.commands import aligned
from model_deploy.profile.kinds import KINDS, WAITING
from model_deploy.profile.traces import OpTime


class TypeTime(NamedTuple):
    """The time and number of ops of a type in the mean step, overlaps included."""

    type: str
    kind: str
    msec: float
    num_ops: float


def step_spans(ops: Iterable[OpTime]) -> dict[int, tuple[int, int]]:
    """Returns begin and end of each step in microseconds, over all devices."""
    spans: dict[int, tuple[int, int]] = {}
    for op in ops:
        begin, end = spans.get(op.step, (op.begin_usec, op.end_usec))
        spans[op.step] = min(begin, op.begin_usec), max(end, op.end_usec)
    return spans


def device_times(ops: Sequence[OpTime]) -> dict[str, dict[str, float]]:
    """Returns milliseconds of the mean step, by device and by kind of op.

    Each moment counts once: as the first of `KINDS` that runs, or as `waiting`; so the sum over
    kinds is the time of the step.
    """
    spans = step_spans(ops)
    whole = sum(end - begin for begin, end in spans.values())
    times = {}
    for device in sorted({op.device for op in ops}):
        usec = dict.fromkeys(KINDS, 0)
        for step in spans:
            own = [op for op in ops if op.device == device and op.step == step]
            for kind, more in _usec_by_kind(own).items():
                usec[kind] += more
        usec[WAITING] = whole - sum(usec.values())
        times[device] = {kind: value / 1000 / len(spans) for kind, value in usec.items()}
    return times


def _usec_by_kind(ops: Sequence[OpTime]) -> dict[str, int]:
    """Returns by kind the time in which it runs and no earlier kind of `KINDS` does."""
    changes = [(op.begin_usec, 1, op.kind) for op in ops]
    changes += [(op.end_usec, -1, op.kind) for op in ops]
    running: collections.Counter[str] = collections.Counter()
    usec = dict.fromkeys(KINDS, 0)
    last = 0
    for moment, change, kind in sorted(changes):
        first = next((each for each in KINDS if running[each]), None)
        if first is not None:
            usec[first] += moment - last
        running[kind] += change
        last = moment
    return usec


def type_times(ops: Sequence[OpTime]) -> list[TypeTime]:
    """Returns the types of ops, longest total time first."""
    steps = len(step_spans(ops))
    usec: collections.Counter[str] = collections.Counter()
    count: collections.Counter[str] = collections.Counter()
    kinds = {}
    for op in ops:
        usec[op.type] += op.usec
        count[op.type] += 1
        kinds[op.type] = op.kind
    return [
        TypeTime(type_, kinds[type_], total / 1000 / steps, count[type_] / steps)
        for type_, total in usec.most_common()
    ]


def report(ops: Sequence[OpTime], num_types: int = 15) -> str:
    """Formats a table of devices and a table of types of ops.

    Args:
      ops: the ops of at least one step.
      num_types: maximum number of types in the second table.
    """
    spans = step_spans(ops)
    mean = sum(end - begin for begin, end in spans.values()) / 1000 / len(spans)
    steps = f"steps {min(spans)} to {max(spans)}, {mean:.2f} ms in the mean"
    devices = [["", *KINDS, WAITING]]
    for device, times in device_times(ops).items():
        devices.append([device, *(f"{msec:.2f} ({msec / mean:4.0%})" for msec in times.values())])
    types = type_times(ops)
    rows = [["ms of a step", "ops", "kind", "type of op, all devices"]]
    rows += [
        [f"{each.msec:.3f}", f"{each.num_ops:.1f}", each.kind, each.type]
        for each in types[:num_types]
    ]
    if len(types) > num_types:
        rest = sum(each.msec for each in types[num_types:])
        rows.append([f"{rest:.3f}", "", "", f"{len(types) - num_types} other types"])
    return "\n".join(
        [f"{steps}; ms of a step:", *aligned(devices), "", *aligned(rows, left=(2, 3))]
    )
