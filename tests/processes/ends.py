"""Ends of programs on a busy machine: `python -m tests.processes.ends --count=50`.

A small program that calls `deploy` and `train` ends as often as asked, in each way to train: alone,
as a cluster, and as an elastic run.  Loops keep the processor busy, and its own priority is low
once its last step is made.  None may abort, hang, or end late.
"""

import argparse
import collections
import contextlib
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from model_deploy.launch import ReservedPorts
from model_deploy.launch.task import task_configs
from model_deploy.processes import WORKER, WORLD_FILE, World, write_world
from tests.processes.harness import Processes

PROGRAM = """
import os, sys, time
import tensorflow.compat.v1 as tf
from model_deploy import DeploymentConfig, deploy, elastic, slim, train
from model_deploy.cluster import WORLD_FILE
from model_deploy.hooks import add_session_hook
from model_deploy.training import join_cluster

tf.disable_eager_execution()


def model_fn(batches):
    net = slim.fully_connected(tf.cast(batches.get_next(), tf.float32), 16)
    tf.losses.add_loss(tf.reduce_mean(tf.square(net - 1.0)))


class Lowered(tf.train.SessionRunHook):
    def end(self, session):
        os.nice(10)


def build(config, **arguments):
    dataset = tf.data.Dataset.range(32).batch(8, True).batch(4, True).repeat()
    batches = tf.data.make_one_shot_iterator(dataset)
    add_session_hook(Lowered())
    return deploy(config, model_fn, [batches], optimizer=tf.train.AdamOptimizer(), **arguments)


train_dir, way = sys.argv[1:]
config = DeploymentConfig(num_clones=2, clone_on_cpu=True, all_reduce=way == "all-reduce")
if WORLD_FILE in os.environ:
    elastic.train_elastic(
        lambda here: elastic.ElasticModel(build(here)), config, train_dir, max_steps=10
    )
else:
    place = join_cluster(os.environ)
    count = 2 if way == "synchronous" else None
    model = build(place.deployment(config), replicas_to_aggregate=count)
    train(model, train_dir, max_steps=10, place=place)
print(f"its last line at {time.time():.3f}", flush=True)
"""
_BUSY = [sys.executable, "-S", "-c", "while True: pass"]
_LIMIT_SECS = 300.0
# Seconds from the last line of all to the end of a process, after which it has ended late.
LATE_SECS = 30.0


class Way(NamedTuple):
    """A way to train: its workers, its parameter servers, and whether it is an elastic run."""

    workers: int
    ps: int
    is_elastic: bool = False


# Alone four programs run at a time, each by itself.
WAYS = {
    "alone": Way(0, 0),
    "asynchronous": Way(2, 1),
    "synchronous": Way(2, 1),
    "all-reduce": Way(2, 0),
    "elastic all-reduce": Way(2, 0, True),
    "elastic ps": Way(2, 1, True),
}


def end_programs(count, way, *, forked=True, busy=2):
    """Runs the program to its end several times, one after the other.

    Args:
      count: how many ends there are, at least; a cluster has one for each task.
      way: a key of `WAYS`.
      forked: whether programs are spared their imports; they end as all do.
      busy: how many loops take the processor from them.

    Returns:
      How often there was each exit status, 128 + n after signal n, and how often `late`.

    Raises:
      AssertionError: with the log, if one does not end.
    """
    found = collections.Counter()
    with tempfile.TemporaryDirectory() as folder, Processes(folder) as processes:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        for number in range(busy):
            processes.start(f"busy-{number}", _BUSY)
        while found.total() < count:
            found.update(_run_together(processes, [sys.executable, str(program)], way, forked))
            print(f"{way}: {found.total()} ends: {dict(found)}", flush=True)
    return found


def _run_together(processes, command, way, forked):
    """Runs four programs, or a cluster of them, at a time; their exit statuses, or `late`."""
    started = []
    with tempfile.TemporaryDirectory() as folder, _places(folder, WAYS[way]) as places:
        for number, environment in enumerate(places):
            train_dir = f"{folder}/{number if way == 'alone' else 'train'}"
            started.append(
                processes.start(
                    f"{Path(folder).name}-{number}",
                    [*command, train_dir, way],
                    guarded=False,
                    forked=forked,
                    **environment,
                )
            )
        ended_at = _ends_of(started)
    last = max(float(at) for each in started for at in re.findall(r"last line at (.*)", each.log))
    results = []
    for process in started:
        status = process.wait()
        late = not status and ended_at[process.name] - last > LATE_SECS
        results.append("late" if late else status)
        if results[-1]:
            print(process.log)
    return results


def _ends_of(started):
    """When each process has ended, by its name; seconds since the epoch."""
    ended_at = {}

    def all_have_ended():
        for process in started:
            if process.name not in ended_at and not process.is_running:
                ended_at[process.name] = time.time()
        return len(ended_at) == len(started)

    Processes.wait_until(all_have_ended, _LIMIT_SECS, lambda: "\n".join(p.log for p in started))
    return ended_at


@contextlib.contextmanager
def _places(folder, way):
    """What each process has in its environment."""
    if not way.workers:
        yield [{}] * 4
        return
    with ReservedPorts(way.workers + way.ps) as ports:
        configs = dict(task_configs(way.workers, ports.addresses))
        places = [{"TF_CONFIG": tf_config} for tf_config in configs.values()]
        if way.is_elastic:
            path = Path(folder) / "world.json"
            write_world(
                path, World(1, way.workers, dict(enumerate(ports.addresses[: way.workers])))
            )
            places = [
                {
                    **({"TF_CONFIG": tf_config} if way.ps else {}),
                    WORLD_FILE: str(path),
                    **({WORKER: name.split()[1]} if name.startswith("worker") else {}),
                }
                for name, tf_config in configs.items()
            ]
        yield places


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50, help="ends in each way, at least")
    parser.add_argument("--way", choices=WAYS, help="one way only (default: all)")
    parser.add_argument("--real", action="store_true", help="each program makes its imports")
    parser.add_argument("--busy", type=int, default=2, help="loops that keep the processor busy")
    options = parser.parse_args()
    start, total = time.monotonic(), collections.Counter()
    for way in [options.way] if options.way else WAYS:
        total += end_programs(options.count, way, forked=not options.real, busy=options.busy)
    print(f"exit statuses {dict(total)} in {time.monotonic() - start:.0f} s")
    sys.exit(int(set(total) != {0}))


if __name__ == "__main__":
    main()
