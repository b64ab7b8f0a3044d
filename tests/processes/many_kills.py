"""Kills at random, one after the other: `python -m tests.processes.many_kills --kills=1000`.

Four workers of an elastic run train; every so often one of them, the chief not spared, is killed,
and another one is started in its place.  Printed are how long no step was made after a kill
(median, 99th percentile, longest), the effective time of the run, and how far its weights are from
those of the undisturbed run.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import time

import numpy as np

from model_deploy.runs import read_time_spent
from tests.processes.harness import Processes, folder_of
from tests.processes.test_elastic import WAYS, ElasticLaunch, made_in

WORKERS = 4
STEP_SECS = 0.1


class Kills(ElasticLaunch):
    """A launch whose lost workers are replaced, and the times at which workers were killed.

    Args:
      folder: of all its files.
      processes: starts it.
      way: a key of `WAYS`.
      steps: its last step.
      real: whether workers make their imports; else they are forked from a process that has.
    """

    def __init__(self, folder, processes, way, steps, real=False):
        flags = [*WAYS[way], "--max_restarts=1000000"]
        super().__init__(
            folder,
            processes,
            WORKERS,
            steps,
            least=2,
            step_secs=STEP_SECS,
            way=flags,
            forked=not real,
        )
        self.killed_at = []

    def kill_one(self, generator):
        """Kills a worker that has made a step, any of them alike."""
        made = [name for name in self.living() if made_in(self.log(name))]
        if len(made) < 3:  # two are left that can go on
            return
        with contextlib.suppress(ProcessLookupError):  # it may just have ended
            self.signal(generator.choice(made))
            self.killed_at.append(time.time())


def kill_many(folder, way, kills, *, every, seed=0, real=False):
    """Trains while workers are killed; checks the end of the run, and its weights to 1e-6.

    Args:
      folder: of all its files.
      way: a key of `WAYS`.
      kills: how many workers are killed.
      every: mean seconds from one kill to the next; each is between half and one and a half of it.
      seed: of who is killed, and when.
      real: as for `Kills`.

    Returns:
      The seconds after each kill in which no step was made, a list.
    """
    generator = random.Random(seed)
    steps = round((kills + 1) * every / STEP_SECS)
    with Processes(folder) as processes:
        run = Kills(folder, processes, way, steps, real)
        for number in range(WORKERS):
            run.wait_for_step(f"worker {number}", 1)
        while len(run.killed_at) < kills and run.process.is_running:
            time.sleep(every * generator.uniform(0.5, 1.5))
            run.kill_one(generator)
        time.sleep(every)
        run.end()
    processes.assert_no_orphan()
    return pauses(run.killed_at, run.logs())


def pauses(killed_at, logs):
    """The longest time between two steps of the run that a kill, or the second after, falls into.

    Args:
      killed_at: when workers were killed, in seconds since the epoch, in order.
      logs: what each worker has printed.

    Returns:
      Seconds for each kill, a list.
    """
    first = {}
    for step, at in itertools.chain.from_iterable(map(made_in, logs)):
        first[step] = min(at, first.get(step, at))
    made = np.array(sorted(first.values()))
    gaps = np.diff(made)
    found = []
    for at in killed_at:
        begin, end = np.searchsorted(made, [at, at + 1.0])
        found.append(float(gaps[max(0, begin - 1) : end].max()))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", default="all-reduce", choices=WAYS, help="how workers train")
    parser.add_argument("--kills", type=int, default=1000, help="how many workers are killed")
    parser.add_argument("--every", type=float, default=15.0, help="mean seconds between two kills")
    parser.add_argument("--seed", type=int, default=0, help="of who is killed, and when")
    parser.add_argument("--real", action="store_true", help="each worker makes its imports")
    parser.add_argument("--folder", help="of all files, pauses.json too; default: none are kept")
    options = parser.parse_args()
    with folder_of(options.folder) as folder:
        found = kill_many(
            folder,
            options.way,
            options.kills,
            every=options.every,
            seed=options.seed,
            real=options.real,
        )
        (folder / "pauses.json").write_text(json.dumps(found))
        spent = read_time_spent(folder / "train")
        middle, late, longest = np.percentile(found, [50, 99, 100])
        print(
            f"{options.way}, {len(found)} kills: pause p50 {middle:.2f} s, p99 {late:.2f} s, "
            f"longest {longest:.2f} s; {spent}; load {os.getloadavg()[1]:.1f}"
        )


if __name__ == "__main__":
    main()
