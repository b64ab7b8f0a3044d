"""Workers are killed, ended, stopped and added at random, whichever way they train.

    python -m tests.processes.random_faults FOLDER SECONDS WAY SEED...

makes one run of so many seconds for each seed; `WAYS` has the ways.
"""

import contextlib
import functools
import random
import signal
import sys
import time
from pathlib import Path

from tests.processes import test_elastic
from tests.processes.harness import Processes, Workers
from tests.processes.test_elastic import ElasticLaunch

WORKERS = 4
# A worker that is stopped goes on after at most so long.
_MOST_STOPPED_SECS = 3.0
# With the usual rate gradients that are four steps old would diverge.
_ASYNCHRONOUS = [
    *(sys.executable, "-m", "tests.processes.training"),
    *("--mode=asynchronous", "--learning_rate=0.002"),
]


class Elastic(ElasticLaunch):
    """An elastic run.

    Args:
      folder: of all its files.
      processes: starts it.
      steps: its last step.
      step_secs: seconds between two steps.
      num_ps: number of parameter servers; 0 for all-reduce.
    """

    def __init__(self, folder, processes, steps, *, step_secs, num_ps):
        way = ["--elastic", f"--num_ps={num_ps}"] if num_ps else []
        super().__init__(folder, processes, WORKERS, steps, step_secs=step_secs, way=way)

    def wait_for_start(self):
        """Waits until the last worker has made a step."""
        self.wait_for_step(f"worker {WORKERS - 1}", 1)

    def end(self):
        """Checks the end; returns the longest pause."""
        super().end()
        return test_elastic.longest_pause(*self.logs())


class Asynchronous(Workers):
    """Asynchronous workers, of which the launcher needs the chief; arguments as of `Elastic`."""

    def __init__(self, folder, processes, steps, *, step_secs, num_ps):
        self._steps = steps
        flags = [f"--num_ps={num_ps}", "--num_workers=2", f"--max_workers={WORKERS}"]
        program = asynchronous_program(folder, steps, step_secs)
        super().__init__(folder, processes.launch(flags, program))

    def living(self):
        """Without the chief."""
        return [name for name in super().living() if name != "worker 0"]

    def wait_for_start(self):
        """Waits until both have made a step."""
        for name in ("worker 0", "worker 1"):
            self.process.wait_for_line(rf"^{name}\| step \d+/")

    def end(self):
        """Checks the end, too."""
        super().end()
        test_elastic.check_last_step(self.folder, self._steps)


# Each with its number of parameter servers; and how steps follow each other fast: more of them than
# it makes in a second, and the seconds between two of a worker.
WAYS = {
    "all-reduce": (Elastic, 0, (200, 0.005)),
    "ps": (Elastic, 1, (100, 0.005)),
    "2 ps": (Elastic, 2, (100, 0.005)),
    "asynchronous": (Asynchronous, 1, (250, 0.02)),
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
    rate, step_secs = fast if seed % 2 else (10, 0.5)
    steps = round(rate * secs)
    with Processes(folder) as processes:
        run = start(folder, processes, steps, step_secs=step_secs, num_ps=num_ps)
        run.wait_for_start()
        end = time.monotonic() + secs
        while time.monotonic() < end and run.process.is_running:
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
