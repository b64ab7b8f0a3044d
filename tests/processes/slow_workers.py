"""Makes a worker of a real cluster slow, and looks whom the chief names, how soon, and for what.

python -m tests.processes.slow_workers [--mode=MODE] [--cause=CAUSE]

runs all cases: each way to train with each cause, and prints a line for each.
"""

import argparse
import contextlib
import re
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

from benchmarks import namespaces
from model_deploy.launch import ReservedPorts
from tests.processes.harness import Processes, Tasks
from tests.processes.pace import MODES

WORKERS, SLOW = 3, 2
CAUSES = ("input", "computation", "exchange")
# Steps of some 0.1 s: what a batch takes, or products of matrices, or a weight of 0.8 MB.
_STEPS = {
    "input": ["--input_secs=0.1", "--slow_input_secs=0.25"],
    "computation": ["--input_secs=0.01", "--size=256", "--products=60"],
    "exchange": ["--input_secs=0.05", "--size=448"],
}
_FAST, _SLOW = 400, 40  # megabits per second
_FIRST_PORT = 20000


class Named(NamedTuple):
    """What the chief said of a worker.

    Attributes:
      steps: steps that the slow worker had made since it was slowed down.
      worker: the worker.
      factor: how many times slower it is.
      part: by which part.
    """

    steps: int
    worker: int
    factor: float
    part: str


class _Cluster:
    """Three workers, and a parameter server where the way to train needs one."""

    def __init__(self, processes, mode, cause, stack):
        num_ps = 0 if mode == "all_reduce" else 1
        count = WORKERS + num_ps
        self.hosts = None
        if cause == "exchange":
            self.hosts = stack.enter_context(namespaces.slow_network(count, _FAST))
            addresses = [f"{each.address}:{_FIRST_PORT}" for each in self.hosts]
        else:
            addresses = stack.enter_context(ReservedPorts(count)).addresses
        self.folder = processes.log_dir
        program = [sys.executable, "-m", "tests.processes.pace", f"--mode={mode}"]
        program += [*_STEPS[cause], f"--train_dir={self.folder / 'run'}"]
        self.tasks = Tasks(processes, addresses, num_ps, program)
        names = [f"worker {i}" for i in range(WORKERS)] + [f"ps {i}" for i in range(num_ps)]
        for i, name in enumerate(names):
            within = [] if self.hosts is None else self.hosts[i].within
            self.tasks.start(name, within=within)

    @property
    def chief(self):
        return self.tasks["worker 0"]

    def steps_of(self, worker):
        """How many steps a worker has shown."""
        return len(re.findall(r"^step \d+/.* s/batch", self.tasks[f"worker {worker}"].log, re.M))

    @contextlib.contextmanager
    def slowed(self, worker, cause):
        """Makes a worker slow within the block."""
        if cause == "input":
            mark = self.folder / f"slow-{worker}"
            mark.touch()
            yield
            mark.unlink()
        elif cause == "exchange":
            namespaces.set_rate([self.hosts[worker]], _SLOW)
            yield
            namespaces.set_rate([self.hosts[worker]], _FAST)
        else:
            with stopped_now_and_then(self.tasks[f"worker {worker}"]):
                yield


@contextlib.contextmanager
def stopped_now_and_then(process, share=0.7, period=0.1):
    """Stops a process, as `cpulimit` does, for a share of each period, in seconds."""
    ended = threading.Event()

    def limit():
        while not ended.wait(period * (1 - share)):
            process.signal(signal.SIGSTOP)
            ended.wait(period * share)
            process.signal(signal.SIGCONT)

    thread = threading.Thread(target=limit)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def name_slow_worker(log_dir, mode, causes, settled=30):
    """Slows a worker down by one cause after the other; returns what was said of each, in order.

    Raises:
      AssertionError: if a worker was named before, or nobody was.
    """
    found = []
    with contextlib.ExitStack() as stack:
        processes = stack.enter_context(Processes(log_dir))
        cluster = _Cluster(processes, mode, causes[0], stack)
        for cause in causes:
            seen = cluster.steps_of(SLOW)
            processes.wait_until(lambda seen=seen: cluster.steps_of(SLOW) >= seen + settled)
            before = [cluster.steps_of(SLOW), len(_lines(cluster))]
            assert before[1] == 2 * len(found), cluster.chief.log
            with cluster.slowed(SLOW, cause):
                processes.wait_until(lambda count=before[1]: len(_lines(cluster)) > count, 60)
                steps = cluster.steps_of(SLOW) - before[0]
            worker, factor, part = _lines(cluster)[before[1]]
            found.append(Named(steps, int(worker), float(factor), part))
            if cause != causes[-1]:
                cluster.chief.wait_for_line(r"is no longer slower")
    return found


def _lines(cluster):
    """Worker, factor and part in each line about a slow worker; without the last two it is over."""
    line = r"^step \d+: worker (\d+) is (?:([\d.]+)x slower \((\w+)\)|no longer slower)$"
    return re.findall(line, cluster.chief.log, re.M)


def main():
    """Runs the cases that the flags name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--cause", choices=CAUSES)
    options = parser.parse_args()
    for mode in [options.mode] if options.mode else MODES:
        for cause in [options.cause] if options.cause else CAUSES:
            if cause == "exchange" and (reason := namespaces.missing()):
                print(f"{mode}, {cause}: skipped, {reason}")
                continue
            with tempfile.TemporaryDirectory() as folder:
                [named] = name_slow_worker(Path(folder), mode, [cause])
            print(f"{mode}, {cause}: {named}", flush=True)


if __name__ == "__main__":
    main()
