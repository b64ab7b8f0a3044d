"""The soak: runs of 8 processes with most features, whose memory, files and threads are watched.

    python -m tests.processes.soak --minutes=60 [--folder=DIR]

Asynchronous workers (3), parameter servers (2) and an evaluator train a table that grows, with
checkpoints, increments, summaries and evaluations each second or so; beside them 2 workers of an
elastic run train by all-reduce.  Every few seconds `/proc` and the folders of the runs are read.
After a warm-up a line is fitted to each series; the program prints how much each grows in an hour
and ends with 1 where that is more than its bound, a process ended, or a run ends badly.
"""

import argparse
import collections
import dataclasses
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from model_deploy.checkpoints.files import steps_in
from tests.processes.harness import LAUNCH, Processes

PROGRAM = [sys.executable, "-m", "tests.processes.soaking"]
EACH_SECOND = ["--save_interval_secs=1", "--save_summaries_secs=1", "--log_every_n_steps=200"]
# Flags of the launcher and of the program for each run.
RUNS = {
    "ps": (
        ["--num_workers=3", "--num_ps=2", "--evaluator"],
        [*EACH_SECOND, "--checkpoint_increments=3", "--eval_every_n_steps=2000"],
    ),
    "elastic": (["--max_workers=2"], EACH_SECOND),
}
NUM_PROCESSES = 8
SAMPLE_SECS = 5.0
# Of the whole time, until caches and the memory of TensorFlow's allocators are full.
WARM_UP = 0.4
# Files with a line, an event or a picture of all lines for each log: they grow by design.
_GROWS_BY_DESIGN = re.compile(r"events\.out\.|metrics\.jsonl$|\.log$|\.png$")
# Growth in an hour that is let pass: MiB of memory of a process, descriptors, threads, MiB on disk.
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
        """Growth in an hour: the slope of a line through what comes after the warm-up."""
        secs, values = np.array(self.secs), np.array(self.values, float)
        late = secs >= secs[0] + WARM_UP * (secs[-1] - secs[0])
        return float(np.polyfit(secs[late] / 3600, values[late], 1)[0])

    @property
    def holds(self):
        """Whether it grows no more than it may."""
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


class Soak:
    """The runs under way.

    Args:
      folder: of all files.
      processes: starts them.
    """

    def __init__(self, folder, processes):
        self.folder, self._stop = folder, folder / "stop"
        self.launches, self._samples = {}, collections.defaultdict(lambda: ([], []))
        for name, (flags, more) in RUNS.items():
            (folder / name).mkdir()
            program = [*PROGRAM, f"--train_dir={folder / name / 'run'}", f"--until={self._stop}"]
            command = [*LAUNCH, *flags, f"--log_dir={folder / name}", "--", *program, *more]
            self.launches[name] = processes.start(name, command, guarded=False, forked=False)

    @property
    def tasks(self):
        """Process ids of all tasks by their names."""
        return {
            f"{name}: {task}": int(pid)
            for name, launch in self.launches.items()
            for task, pid in re.findall(r"^([a-z]+(?: \d+)?)\| process (\d+)$", launch.log, re.M)
        }

    def step(self, name):
        """The step of a run's newest checkpoint; 0 without one."""
        return max(steps_in(str(self.folder / name / "run")), default=0)

    def wait_for_start(self):
        """Waits until all have made steps."""
        Processes.wait_until(lambda: len(self.tasks) == NUM_PROCESSES)
        Processes.wait_until(lambda: all(map(self.step, RUNS)))

    def sample(self, secs):
        """Notes what all processes and folders have now."""
        for name, launch in self.launches.items():
            assert launch.is_running, f"{name}: {launch.log[-3000:]}"
            failed = re.search(r"^launch\| .* failed with.*", launch.log, re.M)
            assert failed is None, failed[0]
        found = {whose: of_process(pid) for whose, pid in self.tasks.items()}
        found |= {f"{name}: launcher": of_process(each.pid) for name, each in self.launches.items()}
        found |= {f"{name}: folder": of_folder(self.folder / name) for name in RUNS}
        with (self.folder / "samples.jsonl").open("a") as file:
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

    def end(self):
        """Lets both end, with 0; returns how many ops each process said its graph has."""
        self._stop.touch()
        for launch in self.launches.values():
            assert launch.wait() == 0, launch.log[-3000:]
        return {
            f"{name}: {task}": {
                int(count) for count in re.findall(rf"^{task}\| graph of (\d+)", log, re.M)
            }
            for name, log in ((name, launch.log) for name, launch in self.launches.items())
            for task in sorted(set(re.findall(r"^(worker \d+)\|", log, re.M)))
        }


def soak(folder, minutes):
    """Runs it for so many minutes; returns its series, steps by run, and ops by process."""
    with Processes(folder) as processes:
        run = Soak(folder, processes)
        run.wait_for_start()
        first, start = {name: run.step(name) for name in RUNS}, time.monotonic()
        while (secs := time.monotonic() - start) < 60 * minutes:
            run.sample(secs)
            time.sleep(SAMPLE_SECS)
        steps = {name: run.step(name) - first[name] for name in RUNS}
        ops = run.end()
    processes.assert_no_orphan()
    return run.series(), steps, ops


def table(series):
    """The rows of a table in Markdown: first and last value after the warm-up, growth, bound."""
    head = "| process or run | what | after warm-up | at the end | growth in an hour | bound | |"
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="of training")
    parser.add_argument("--folder", type=Path, default=None, help="for all files; kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        series, steps, ops = soak(folder, options.minutes)
    print(table(series))
    for name, count in steps.items():
        each = 24 * 60 * options.minutes / count if count else float("inf")
        print(f"{name}: {count:,} steps: 24 hours of steps of {each * 60 / 60:.3f} s")
    print(f"ops of graphs: {ops}")
    sys.exit(int(not all(each.holds for each in series) or any(len(n) > 1 for n in ops.values())))


if __name__ == "__main__":
    main()
