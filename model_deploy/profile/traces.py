"""Ops of profiled steps, written to and read from files for Chrome's trace viewer."""

import heapq
import json
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from model_deploy import file_systems
from model_deploy.commands import parse_json, replaced_file
from model_deploy.profile.kinds import kind_of, op_type

FOLDER = "profile"
_SUFFIX = ".trace.json"


class OpTime(NamedTuple):
    """The time at which an op ran.

    Attributes:
      step: the step.
      device: device of the op, such as `/job:ps/replica:0/task:0/device:CPU:0`.
      name: name of the op.
      type: type of the op.
      begin_usec: start, by the clock of the device's machine.
      usec: duration.
    """

    step: int
    device: str
    name: str
    type: str
    begin_usec: int
    usec: int

    @property
    def kind(self) -> str:
        """The kind of the op, one of `kinds.KINDS`."""
        return kind_of(self.type)

    @property
    def end_usec(self) -> int:
        """The time at which the op ended."""
        return self.begin_usec + self.usec


def ops_of(step: int, step_stats: Any) -> list[OpTime]:
    """Returns the ops in a `tf.RunMetadata`'s `step_stats`, of all devices."""
    return [
        OpTime(
            step=step,
            device=stats.device,
            name=node.node_name,
            type=op_type(node.node_name, node.timeline_label),
            begin_usec=node.all_start_micros,
            # The later end: asynchronous ops, such as transfers, end after their kernel returns.
            usec=max(node.all_end_rel_micros, node.op_end_rel_micros, 1),
        )
        for stats in step_stats.dev_stats
        for node in stats.node_stats
        if node.node_name not in ("_SOURCE", "_SINK")
    ]


def write_trace(train_dir: str, ops: Sequence[OpTime]) -> str:
    """Writes `profile/steps_<first>_<last>.trace.json`; returns its path.

    Args:
      train_dir: the folder of the run.
      ops: at least one.

    Raises:
      OSError: if the file cannot be written.
    """
    steps = [op.step for op in ops]
    folder = os.path.join(train_dir, FOLDER)
    file_systems.make_folders(folder)
    path = os.path.join(folder, f"steps_{min(steps)}_{max(steps)}{_SUFFIX}")
    with replaced_file(path) as file:
        json.dump({"traceEvents": list(_events(ops))}, file)
    return path


def _events(ops: Sequence[OpTime]) -> Iterable[dict[str, Any]]:
    devices = sorted({op.device for op in ops})
    for number, device in enumerate(devices):
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": device}}
        own = [op for op in ops if op.device == device]
        for op, lane in in_lanes(own):
            yield {
                "ph": "X",
                "name": op.name,
                "cat": op.kind,
                "pid": number,
                "tid": lane,
                "ts": op.begin_usec,
                "dur": op.usec,
                "args": {"op": op.type, "step": op.step},
            }


def in_lanes(ops: Iterable[OpTime]) -> Iterable[tuple[OpTime, int]]:
    """Yields ops in order of time, each with the first free lane from 0."""
    busy: list[tuple[int, int]] = []  # (when it is free, lane)
    free: list[int] = []
    lanes = 0
    for op in sorted(ops, key=lambda op: op.begin_usec):
        while busy and busy[0][0] <= op.begin_usec:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, lanes = lanes, lanes + 1
        heapq.heappush(busy, (op.end_usec, lane))
        yield op, lane


def newest_trace(train_dir: str | os.PathLike[str]) -> str:
    """Returns the path of the trace that was written last.

    Raises:
      ValueError: if there is none.
    """
    folder = os.path.join(os.fspath(train_dir), FOLDER)
    names = file_systems.names_in(folder, f"*{_SUFFIX}") if file_systems.is_folder(folder) else []
    paths = [os.path.join(folder, name) for name in names]
    if not paths:
        raise ValueError(
            f"train_dir must be of a run with --profile_steps, got {os.fspath(train_dir)!r} "
            f"without {FOLDER}/*{_SUFFIX}"
        )
    return max(paths, key=lambda path: file_systems.facts_of(path).modified_nsec)


def read_trace(path: str) -> list[OpTime]:
    """Reads the ops in a file that `write_trace` has written.

    Raises:
      ValueError: if it is not such a file.
      OSError: if it cannot be read.
    """
    try:
        events = parse_json(file_systems.read_text(path))["traceEvents"]
        devices = {each["pid"]: each["args"]["name"] for each in events if each["ph"] == "M"}
        ops = [
            OpTime(
                each["args"]["step"],
                devices[each["pid"]],
                each["name"],
                each["args"]["op"],
                each["ts"],
                each["dur"],
            )
            for each in events
            if each["ph"] == "X"
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"a trace must be one of --profile_steps, got {path!r}: {error!r}"
        ) from error
    if not ops:
        raise ValueError(f"a trace must have ops, got {path!r} with none")
    return ops
