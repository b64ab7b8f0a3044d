"""Runs real workers beside random load, and counts the workers that are named as slow: none is.

python -m tests.processes.noise --secs=3600 [--mode=synchronous]

Processes that compute come and go at random on the same processors, for 0.1 to 3 s each; batches
take 50 to 150 ms, at random and alike for all; a checkpoint is written every 20 steps.
"""

import argparse
import contextlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from model_deploy.launch import ReservedPorts
from tests.processes.harness import Processes, Tasks
from tests.processes.pace import MODES

WORKERS = 3
_STEPS = ["--input_secs=0.1", "--input_jitter=0.5", "--size=128", "--products=20"]
_BURN = "import sys, time; end = time.time() + float(sys.argv[1])\nwhile time.time() < end: pass"


@contextlib.contextmanager
def random_load(seed):
    """Lets processes compute at random; about one at a time in the mean."""
    ended = threading.Event()
    random_numbers = random.Random(seed)

    def load():
        while not ended.wait(random_numbers.expovariate(0.7)):
            secs = random_numbers.uniform(0.1, 3)
            subprocess.Popen([sys.executable, "-I", "-S", "-c", _BURN, str(secs)])

    thread = threading.Thread(target=load)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(folder, mode, secs):
    """Returns the number of steps that the chief has shown, and its lines about slow workers."""
    num_ps = 0 if mode == "all_reduce" else 1
    program = [sys.executable, "-m", "tests.processes.pace", f"--mode={mode}", *_STEPS]
    program += [f"--train_dir={folder / 'run'}", "--save_interval_steps=20"]
    with ReservedPorts(WORKERS + num_ps) as ports, Processes(folder) as processes:
        tasks = Tasks(processes, ports.addresses, num_ps, program)
        for name in [f"worker {i}" for i in range(WORKERS)] + [f"ps {i}" for i in range(num_ps)]:
            tasks.start(name)
        tasks["worker 0"].wait_for_line("^step 1/")
        with random_load(seed=0):
            time.sleep(secs)
        assert all(task.is_running for task in tasks.values())
        log = tasks["worker 0"].log
    steps = re.findall(r"^step \d+/.* s/batch", log, re.M)
    return len(steps), re.findall(r"^step \d+: worker .*$", log, re.M)


def main():
    """Runs for as long as the flags say, and prints what was said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--secs", type=float, default=3600)
    parser.add_argument("--mode", choices=MODES, default="synchronous")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        steps, lines = run(Path(folder), options.mode, options.secs)
    print("\n".join([*lines, f"{options.mode}: {steps} steps of the chief, {len(lines)} lines"]))


if __name__ == "__main__":
    main()
