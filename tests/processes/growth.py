"""Growth of processes and of the folders of runs: memory, descriptors, threads, disk.

Numbers are read from `/proc` and the file system now and then. After a warm-up a line through the
sizes says how much each grows in an hour, which has a bound; counts have one for how many more
there are at the end.
"""

import collections
import dataclasses
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
# threads that are more at the end.
BOUNDS = {"memory": 24.0, "files": 1.0, "threads": 1.0, "disk": 1.0}
_MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Series:
    """What was measured of a process, or of the folder of a run, each time.

    Attributes:
      whose: the process or the run.
      kind: `memory`, `files`, `threads` or `disk`; or `lines`, which has no bound.
      values: one for each time.
      secs: the times.
    """

    whose: str
    kind: str
    values: list
    secs: list

    @property
    def growth(self):
        """Growth in an hour: the slope of a line through what comes after the warm-up.

        Of a count, by how much the median of the last tenth of that time is above that of the first
        tenth: a line through one more thread would say that there are two or three more.
        """
        secs, values = np.array(self.secs), np.array(self.values, float)
        late = secs >= secs[0] + WARM_UP * (secs[-1] - secs[0])
        secs, values = secs[late], values[late]
        if self.kind in _COUNTS:
            tenth = -(-len(values) // 10)
            return float(np.median(values[-tenth:]) - np.median(values[:tenth]))
        return float(np.polyfit(secs / 3600, values, 1)[0])

    @property
    def holds(self):
        """Whether it grows by no more than it may."""
        return self.growth <= BOUNDS.get(self.kind, float("inf"))


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

    def add(self, secs, found):
        """Notes the numbers of each process and folder by their kinds, `secs` after the first."""
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
            Series(whose, kind, values, times)
            for (whose, kind), (times, values) in self._samples.items()
        ]


def table(series):
    """The rows of a table in Markdown: first and last value after the warm-up, growth, bound."""
    head = "| process or run | what | after warm-up | at the end | growth | bound | |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for each in series:
        at = next(i for i, secs in enumerate(each.secs) if secs >= WARM_UP * each.secs[-1])
        bound = BOUNDS.get(each.kind)
        result = "by design" if bound is None else "holds" if each.holds else "GROWS"
        unit = " MiB" if each.kind in ("memory", "disk", "lines") else ""
        lines.append(
            f"| {each.whose} | {each.kind} | {each.values[at]:.1f}{unit} | "
            f"{each.values[-1]:.1f}{unit} | {each.growth:+.2f}{unit} | "
            f"{'' if bound is None else bound} | {result} |"
        )
    return "\n".join(lines)
