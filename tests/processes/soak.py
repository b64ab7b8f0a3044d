"""The soak: runs of 8 processes with most features, whose memory, files and threads are watched.

    python -m tests.processes.soak --minutes=60 [--folder=DIR]

Asynchronous workers (3), parameter servers (2) and an evaluator train a table that grows, with
checkpoints, increments, summaries and evaluations each second or so; beside them 2 workers of an
elastic run train by all-reduce.  Every few seconds `/proc` and the folders of the runs are read.
The program prints how much each grows after a warm-up, and what new worlds and sessions cost, see
`growth.py`, and ends with 1 where one grows by more than its bound, a process ended, or a run ends
badly.
"""

import argparse
import re
import sys
import time
from pathlib import Path

from model_deploy.checkpoints.files import steps_in
from tests.processes.growth import Samples, of_folder, of_process, table
from tests.processes.harness import LAUNCH, Processes, folder_of

PROGRAM = [sys.executable, "-m", "tests.processes.soaking"]
EACH_SECOND = ["--save_interval_secs=1", "--save_summaries_secs=1", "--log_every_n_steps=200"]
# Flags of the launcher and of the program for each run.
RUNS = {
    "ps": (
        ["--num_workers=3", "--num_ps=2", "--evaluator", "--divide_cores"],
        [*EACH_SECOND, "--checkpoint_increments=3", "--eval_every_n_steps=2000"],
    ),
    "elastic": (["--max_workers=2", "--divide_cores"], EACH_SECOND),
}
# Lines of a worker that begins a world or a new session, and of the launcher of a world.
_EVENT = r"(?:world \d+: |.*going on anew|lost the connection)"
NUM_PROCESSES = 8
SAMPLE_SECS = 5.0


class Soak:
    """The runs under way.

    Args:
      folder: of all files.
      processes: starts them.
    """

    def __init__(self, folder, processes):
        self.folder, self._stop = folder, folder / "stop"
        self.launches, self.samples = {}, Samples(folder / "samples.jsonl")
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
        self.samples.add(secs, found, self.events())

    def events(self):
        """How many worlds and new sessions each process has told of."""
        return {
            f"{name}: {task}": len(re.findall(rf"^{of}\| {_EVENT}", launch.log, re.M))
            for name, launch in self.launches.items()
            for of, task in [("launch", "launcher"), *((f"worker {i}",) * 2 for i in range(3))]
        }

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
    return run.samples.series(), steps, ops


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="of training")
    parser.add_argument("--folder", type=Path, default=None, help="for all files; kept")
    options = parser.parse_args()
    with folder_of(options.folder) as folder:
        series, steps, ops = soak(folder, options.minutes)
    print(table(series))
    for name, count in steps.items():
        each = 24 * 60 * options.minutes / count if count else float("inf")
        print(f"{name}: {count:,} steps: 24 hours of steps of {each:.3f} s")
    print(f"ops of graphs: {ops}")
    sys.exit(int(not all(each.holds for each in series) or any(len(n) > 1 for n in ops.values())))


if __name__ == "__main__":
    main()
