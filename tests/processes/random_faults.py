"""Workers are killed, ended, stopped and added at random, whichever way they train.

    python -m tests.processes.random_faults FOLDER SECONDS WAY SEED...

makes one run of so many seconds for each seed; `WAYS` has the ways.
"""

import contextlib
import functools
import os
import random
import re
import signal
import sys
import threading
import time
from pathlib import Path

from model_deploy.cluster import WORKER, WORLD_FILE, World, ready_file, write_world
from model_deploy.launch import ReservedPorts
from model_deploy.launch.task import task_configs
from tests.processes import test_elastic
from tests.processes.harness import Processes

WORKERS = 4
# A worker that is stopped goes on after at most so long.
_MOST_STOPPED_SECS = 3.0
_POLL_SECS = 0.1
_ENDING = (signal.SIGKILL, signal.SIGTERM)
# With the usual rate gradients that are four steps old would diverge.
_ASYNCHRONOUS = [
    *(sys.executable, "-m", "tests.processes.training"),
    *("--mode=asynchronous", "--learning_rate=0.002"),
]


class _ByHand:
    """Workers that this process starts and hits, by their names."""

    def __init__(self):
        self._workers, self._struck = {}, []

    @property
    def is_running(self):
        """Whether no worker has come to the end."""
        return all(process.is_running or process.wait() for process in self._workers.values())

    def living(self):
        """The workers that have started and not ended."""
        return [name for name, process in self._workers.items() if process.is_running]

    def signal(self, name, signum):
        """Sends a signal to a worker."""
        self._workers[name].signal(signum)
        if signum in _ENDING:
            self._struck.append(self._workers[name])

    def _wait_for_the_struck(self):
        """Those that were killed, or asked to end, have ended."""
        for process in self._struck:
            process.wait()


class WorldByHand(_ByHand):
    """An elastic run without the launcher: this process starts workers, and keeps their world.

    Args:
      folder: of all its files.
      processes: starts them.
      steps: its last step.
      step_secs: seconds between two steps.
      num_ps: number of parameter servers; 0 for all-reduce.
    """

    def __init__(self, folder, processes, steps, *, step_secs, num_ps):
        self._folder, self._processes, self._steps = folder, processes, steps
        self._step_secs, self._num_ps = step_secs, num_ps
        self._path = folder / "world.json"
        super().__init__()
        self._slots, self._ports = {}, []
        self._fixed = self._reserve(WORKERS + num_ps).addresses
        self._configs = dict(task_configs(WORKERS, self._fixed)) if num_ps else {}
        self._servers = [
            self._start(name, TF_CONFIG=config)
            for name, config in self._configs.items()
            if name.startswith("ps")
        ]
        for _ in range(WORKERS):
            self.add()
        self._world = None
        self._write(list(self._workers))
        self._ended = threading.Event()
        self._operator = threading.Thread(target=self._keep_world)
        self._operator.start()

    def add(self):
        """Starts one more, if there is a place."""
        used = {self._slots[number] for number in self.living()}
        free = [slot for slot in range(WORKERS) if slot not in used]
        if not free:
            return
        number = len(self._workers)
        self._slots[number] = free[0]
        config = {"TF_CONFIG": self._configs[f"worker {free[0]}"]} if self._num_ps else {}
        process = self._start(f"worker {number}", **config, **{WORKER: str(number)})
        self._workers = {**self._workers, number: process}  # the operator may be looking at it

    def wait_for_start(self):
        """Waits until all have made a step."""
        for process in self._workers.values():
            process.wait_for_line("made ")

    def end(self):
        """Lets steps be fast, and checks the end; returns the longest pause."""
        self._wait_for_the_struck()
        living = self.living()
        try:
            Processes.wait_until(lambda: set(living) <= set(self._world.workers))
            (self._folder / "fast").touch()
            ended = {number: self._workers[number].wait() for number in living}
            assert not any(ended.values()), ended
            assert [server.wait() for server in self._servers] == [0] * self._num_ps
        finally:
            self.close()
        logs = [process.log for process in self._workers.values()]
        test_elastic.check_run(self._folder, WORKERS, self._steps, logs)
        return test_elastic.longest_pause(*logs)

    def close(self):
        """Ends the operator."""
        self._ended.set()
        self._operator.join()
        for ports in self._ports:
            ports.close()

    def _start(self, name, **env):
        command = [
            *test_elastic.PROGRAM,
            *test_elastic.flags_of_run(self._folder, self._steps),
            f"--step_secs={self._step_secs}",
        ]
        env = {WORLD_FILE: str(self._path), **env}
        return self._processes.start(name.replace(" ", "-"), command, **env)

    def _reserve(self, count):
        self._ports.append(ReservedPorts(count))
        return self._ports[-1]

    def _keep_world(self):
        """Writes a world without those that have gone, with those that are ready."""
        while not self._ended.wait(_POLL_SECS) and self.is_running:
            living = self.living()
            asking = [each for each in living if os.path.exists(ready_file(self._path, each))]
            there = [each for each in living if each in self._world.workers or each in asking]
            if there and (asking or set(there) != set(self._world.workers)):
                self._write(there)

    def _write(self, there):
        for number in there:
            with contextlib.suppress(FileNotFoundError):
                os.remove(ready_file(self._path, number))
        if self._num_ps:
            addresses = [self._fixed[self._slots[number]] for number in there]
        else:
            addresses = self._reserve(len(there)).addresses
        generation = 1 if self._world is None else self._world.generation + 1
        self._world = World(generation, WORKERS, dict(zip(there, addresses, strict=True)))
        write_world(self._path, self._world)


class ElasticByLauncher:
    """An elastic run by the launcher; the arguments are those of `WorldByHand`."""

    def __init__(self, folder, processes, steps, *, step_secs, num_ps):
        way = ["--elastic", f"--num_ps={num_ps}"] if num_ps else []
        self._launch = test_elastic.ElasticLaunch(
            folder, processes, WORKERS, steps, step_secs=step_secs, way=way
        )
        self.living, self.signal = self._launch.living, self._launch.signal
        self.add = self._launch.add

    @property
    def is_running(self):
        """Whether the launcher runs."""
        return self._launch.process.is_running

    def wait_for_start(self):
        """Waits until the last worker has made a step."""
        self._launch.wait_for_step(f"worker {WORKERS - 1}", 1)

    def end(self):
        """Checks the end; returns the longest pause."""
        self._launch.end()
        return test_elastic.longest_pause(*self._launch.logs())

    def close(self):
        """Nothing is left to be ended."""


class AsynchronousByHand(_ByHand):
    """Asynchronous workers that this process starts, and starts again.

    The arguments are those of `WorldByHand`.
    """

    def __init__(self, folder, processes, steps, *, step_secs, num_ps):
        super().__init__()
        self._folder, self._processes, self._steps = folder, processes, steps
        self._step_secs = step_secs
        self._ports = ReservedPorts(WORKERS + num_ps)
        self._configs = dict(task_configs(WORKERS, self._ports.addresses))
        self._servers = [self._start(name) for name in self._configs if name.startswith("ps")]
        for _ in range(2):
            self.add()

    def add(self):
        """Starts the first that does not run, the chief before others."""
        free = [f"worker {i}" for i in range(WORKERS) if f"worker {i}" not in self.living()]
        if free and self.is_running:
            self._workers[free[0]] = self._start(free[0])

    def wait_for_start(self):
        """Waits until all have made a step."""
        for process in self._workers.values():
            process.wait_for_line(r"^step \d+/")

    def end(self):
        """Lets steps be fast, and checks the end."""
        self._wait_for_the_struck()
        if "worker 0" not in self.living():
            self.add()
        for name in self.living():
            self._workers[name].wait_for_line(r"^step \d+/")
        (self._folder / "fast").touch()
        ended = {name: self._workers[name].wait() for name in self.living()}
        assert not any(ended.values()), ended
        assert [server.wait() for server in self._servers] == [0] * len(self._servers)
        test_elastic.check_last_step(self._folder, self._steps)

    def close(self):
        """Gives the ports back."""
        self._ports.close()

    def _start(self, name):
        command = asynchronous_program(self._folder, self._steps, self._step_secs)
        config = self._configs[name]
        return self._processes.start(name.replace(" ", "-"), command, TF_CONFIG=config)


class AsynchronousByLauncher:
    """Asynchronous workers by the launcher, which needs the chief.

    The arguments are those of `WorldByHand`.
    """

    def __init__(self, folder, processes, steps, *, step_secs, num_ps):
        self._folder, self._steps = folder, steps
        flags = [f"--num_ps={num_ps}", "--num_workers=2", f"--max_workers={WORKERS}"]
        program = asynchronous_program(folder, steps, step_secs)
        self._launch = processes.launch(flags, program)

    @property
    def is_running(self):
        """Whether the launcher runs."""
        return self._launch.is_running

    def living(self):
        """The workers that have started and not ended, without the chief."""
        return [name for name, pids in self._pids().items() if len(pids) > self._ends(name)]

    def signal(self, name, signum):
        """Sends a signal to a worker."""
        os.kill(int(self._pids()[name][-1]), signum)

    def add(self):
        """Asks for one more."""
        self._launch.signal(signal.SIGUSR1)

    def wait_for_start(self):
        """Waits until both have made a step."""
        for name in ("worker 0", "worker 1"):
            self._launch.wait_for_line(rf"^{name}\| step \d+/")

    def end(self):
        """Lets steps be fast, and checks the end."""
        (self._folder / "fast").touch()
        assert self._launch.wait() == 0, self._launch.log
        test_elastic.check_last_step(self._folder, self._steps)

    def close(self):
        """Nothing is left to be ended."""

    def _pids(self):
        found = {}
        lines = r"^(worker [1-9]\d*)\| process (\d+)$"
        for name, pid in re.findall(lines, self._launch.log, re.MULTILINE):
            found.setdefault(name, []).append(pid)
        return found

    def _ends(self, name):
        return len(re.findall(rf"^launch\| {name} (?:was|failed)", self._launch.log, re.MULTILINE))


# Each with its number of parameter servers; and how steps follow each other fast: more of them than
# it makes in a second, and the seconds between two of a worker.
WAYS = {
    "all-reduce": (ElasticByLauncher, 0, (200, 0.005)),
    "all-reduce by hand": (WorldByHand, 0, (200, 0.005)),
    "ps": (ElasticByLauncher, 1, (100, 0.005)),
    "ps by hand": (WorldByHand, 1, (100, 0.005)),
    "2 ps": (ElasticByLauncher, 2, (100, 0.005)),
    "2 ps by hand": (WorldByHand, 2, (100, 0.005)),
    "asynchronous": (AsynchronousByLauncher, 1, (250, 0.02)),
    "asynchronous by hand": (AsynchronousByHand, 1, (250, 0.02)),
}


def asynchronous_program(folder, steps, step_secs):
    return [
        *_ASYNCHRONOUS,
        f"--train_dir={folder / 'train'}",
        f"--max_number_of_steps={steps}",
        f"--gate={folder / 'fast'}",
        f"--step_secs={step_secs}",
    ]


def disturb(folder, way, seed, secs):
    """Disturbs a run for so many seconds, and checks its end.

    Steps that follow each other fast (odd seeds) are hit within, others mostly in between.

    Returns:
      The longest pause of a worker between two steps, in seconds; None for asynchronous ones.
    """
    generator = random.Random(seed)
    start, num_ps, fast = WAYS[way]
    rate, step_secs = fast if seed % 2 else (50, 0.1)
    steps = round(rate * secs)
    with Processes(folder) as processes, contextlib.ExitStack() as stack:
        run = start(folder, processes, steps, step_secs=step_secs, num_ps=num_ps)
        stack.callback(run.close)
        run.wait_for_start()
        end = time.monotonic() + secs
        while time.monotonic() < end and run.is_running:
            time.sleep(generator.uniform(0.0, min(8.0, secs / 4)))
            _strike(run, generator)
        pause = run.end()
    processes.assert_no_orphan()
    return pause


def _strike(run, generator):
    """Adds a worker, or picks one and kills, ends or stops it; one is always left alone."""
    living = run.living()
    if len(living) < 2 or generator.random() < 0.4:
        run.add()
        return
    victim = generator.choice(living)
    hit = functools.partial(run.signal, victim)
    with contextlib.suppress(ProcessLookupError):  # it may just have ended
        match generator.choice(("kill", "kill", "end", "stop")):
            case "kill":
                hit(signal.SIGKILL)
            case "end":
                hit(signal.SIGTERM)
            case "stop":
                hit(signal.SIGSTOP)
                time.sleep(generator.uniform(0.0, _MOST_STOPPED_SECS))
                hit(signal.SIGCONT)


if __name__ == "__main__":
    for number in map(int, sys.argv[4:]):
        run_folder = Path(sys.argv[1]) / f"{sys.argv[3]} {number}".replace(" ", "-")
        run_folder.mkdir(parents=True)
        began = time.monotonic()
        found = disturb(run_folder, sys.argv[3], number, float(sys.argv[2]))
        took = f"{time.monotonic() - began:.0f} s"
        pause = "" if found is None else f", longest pause {found:.2f} s"
        print(f"{sys.argv[3]}, seed {number}: {took}{pause}", flush=True)
