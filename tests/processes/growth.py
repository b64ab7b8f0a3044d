"""Growth of processes and of the folders of runs: memory, descriptors, threads, disk.

Numbers are read from `/proc` and the file system now and then. After a warm-up a line through the
sizes says how much each grows in an hour, which has a bound; counts have one for how many more
there are at the end.

A process may meet events, such as a new world, each of which costs it something once: that has a
bound of its own, and growth is that of the longest stretch without an event.
"""

import collections
import dataclasses
import itertools
import json
import os
import re
from pathlib import Path

import numpy as np

# Of the whole time, until caches and the memory of TensorFlow's allocators are full.
WARM_UP = 0.4
# Files with a line, an event or a picture of all lines for each log: they grow by design.
_GROWS_BY_DESIGN = re.compile(r"events\.out\.|metrics\.jsonl$|\.log$|\.png$")
_COUNTS = ("files", "threads")
# Growth that is let pass: in an hour MiB of memory of a process and MiB on disk; descriptors and
# threads that are more at the end.  gRPC and TensorFlow keep as many threads as were ever busy at
# once, which is a few more in an hour; one that each checkpoint left would be thousands.
BOUNDS = {"memory": 24.0, "files": 1.0, "threads": 3.0, "disk": 1.0}
# What an event may cost once.  A new world leaves a server of TensorFlow.
BOUNDS_OF_EVENT = {"memory": 80.0, "files": 12.0, "threads": 100.0}
# Seconds before and after an event between which its cost is measured.
_BEFORE, _AFTER = 30.0, 300.0
# Share of the time after the warm-up that a stretch without an event must have.
_STRETCH = 0.4
_MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Series:
    """What was measured of a process, or of the folder of a run, each time.

    Attributes:
      whose: the process or the run.
      kind: `memory`, `files`, `threads` or `disk`; or `lines`, which has no bound.
      values: one for each time.
      secs: the times.
      events: the times at which an event was seen.
    """

    whose: str
    kind: str
    values: list
    secs: list
    events: list = dataclasses.field(default_factory=list)

    def _between(self, begin, end):
        """Times and values from one time to another one."""
        secs, values = np.array(self.secs), np.array(self.values, float)
        inside = (secs >= begin) & (secs <= end)
        return secs[inside], values[inside]

    @property
    def _stretch(self):
        """Begin and end of the longest stretch without an event; of all, if it is too short."""
        first, last = self.secs[0], self.secs[-1]
        warm = first + WARM_UP * (last - first)
        edges = [warm, *(at for at in self.events if at > warm), last]
        found = [
            (
                begin + _AFTER if begin in self.events else begin,
                end - _BEFORE if end < last else end,
            )
            for begin, end in itertools.pairwise(edges)
        ]
        begin, end = max(found, key=lambda each: each[1] - each[0])
        return (begin, end) if end - begin >= _STRETCH * (last - warm) else (warm, last)

    @property
    def costs(self):
        """How much more there was after each event than before it, one for each."""
        return [
            float(np.median(after) - np.median(before))
            for at in self.events
            for _, before in [self._between(at - 2 * _BEFORE, at - _BEFORE / 2)]
            for _, after in [self._between(at + _AFTER, at + 2 * _AFTER)]
            if len(before) and len(after)
        ]

    @property
    def growth(self):
        """Growth in an hour: the slope of a line through a stretch after the warm-up.

        Of a count, by how much the median of the last tenth of that time is above that of the first
        tenth: a line through one more thread would say that there are two or three more.
        """
        secs, values = self._between(*self._stretch)
        if self.kind in _COUNTS:
            tenth = -(-len(values) // 10)
            return float(np.median(values[-tenth:]) - np.median(values[:tenth]))
        return float(np.polyfit(secs / 3600, values, 1)[0])

    @property
    def holds(self):
        """Whether it grows by no more than it may."""
        most = BOUNDS_OF_EVENT.get(self.kind, float("inf"))
        return (
            self.growth <= BOUNDS.get(self.kind, float("inf"))
            and max(self.costs, default=0) <= most
        )


def of_process(pid):
    """Resident memory in MiB, open descriptors and threads of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    rss, threads = (
        int(found[1]) if (found := re.search(rf"{name}:\s+(\d+)", status)) else 0
        for name in ("VmRSS", "Threads")
    )
    return {
        "memory": rss / 1024,
        "files": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": threads,
    }


def of_folder(folder):
    """MiB of what must not grow in the folder of a run, and of what does by design."""
    sizes = collections.Counter()
    for path in folder.rglob("*"):
        try:
            size = path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue  # a checkpoint that has been replaced
        sizes["lines" if _GROWS_BY_DESIGN.search(path.name) else "disk"] += size / _MIB
    return {"disk": sizes["disk"], "lines": sizes["lines"]}


class Samples:
    """What processes and folders had at each time, also as lines of a file.

    Args:
      path: of the file.
    """

    def __init__(self, path):
        self._path, self._samples = path, collections.defaultdict(lambda: ([], []))
        self._counts, self._events = {}, collections.defaultdict(list)

    def add(self, secs, found, events=None):
        """Notes the numbers of each process and folder by their kinds, `secs` after the first.

        Args:
          secs: when.
          found: the numbers by kind, by process or folder.
          events: how many events each process has met up to now.
        """
        for whose, count in (events or {}).items():
            if count > self._counts.setdefault(whose, count):
                self._counts[whose] = count
                self._events[whose].append(secs)
        with self._path.open("a") as file:
            print(json.dumps({"secs": round(secs), **found}), file=file)
        for whose, values in found.items():
            for kind, value in values.items():
                times, series = self._samples[whose, kind]
                times.append(secs)
                series.append(value)

    def series(self):
        """All that was noted."""
        return [
            Series(whose, kind, values, times, self._events[whose])
            for (whose, kind), (times, values) in self._samples.items()
        ]


def table(series):
    """The rows of a table in Markdown: first and last value after the warm-up, growth, bound."""
    head = "| process or run | what | after warm-up | at the end | growth | bound | events | |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for each in series:
        at = next(i for i, secs in enumerate(each.secs) if secs >= WARM_UP * each.secs[-1])
        bound = BOUNDS.get(each.kind)
        result = "by design" if bound is None else "holds" if each.holds else "GROWS"
        unit = " MiB" if each.kind in ("memory", "disk", "lines") else ""
        lines.append(
            f"| {each.whose} | {each.kind} | {each.values[at]:.1f}{unit} | "
            f"{each.values[-1]:.1f}{unit} | {each.growth:+.2f}{unit} | "
            f"{'' if bound is None else bound} | "
            f"{', '.join(f'{cost:+.0f}' for cost in each.costs)} | {result} |"
        )
    return "\n".join(lines)
