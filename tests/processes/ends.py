"""Ends of programs on a busy machine: `python -m tests.processes.ends --count=100`.

A small program that calls `deploy` and `train` ends as often as asked, alone or as a cluster.
Loops keep the processor busy, and its own priority is low once its last step is made.  None may
abort or hang.
"""

import argparse
import collections
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

from model_deploy.launch import ReservedPorts
from tests.processes.harness import Processes

PROGRAM = """
import os, sys
import tensorflow.compat.v1 as tf
from model_deploy import DeploymentConfig, deploy, slim, train
from model_deploy.hooks import add_session_hook
from model_deploy.training import join_cluster

tf.disable_eager_execution()


def model_fn(batches):
    net = slim.fully_connected(tf.cast(batches.get_next(), tf.float32), 16)
    tf.losses.add_loss(tf.reduce_mean(tf.square(net - 1.0)))


class Lowered(tf.train.SessionRunHook):
    def end(self, session):
        os.nice(10)


place = join_cluster(os.environ)
config = place.deployment(DeploymentConfig(num_clones=2, clone_on_cpu=True))
dataset = tf.data.Dataset.range(32).batch(8, True).batch(4, True).repeat()
batches = tf.data.make_one_shot_iterator(dataset)
model = deploy(config, model_fn, [batches], optimizer=tf.train.AdamOptimizer())
add_session_hook(Lowered())
train(model, sys.argv[1], max_steps=10, place=place)
print("its last line")
"""
_BUSY = [sys.executable, "-S", "-c", "while True: pass"]
_LIMIT_SECS = 300.0
# Job -> how many of it are in a cluster.
CLUSTER = {"worker": 2, "ps": 1}


def end_programs(count, cluster=False, forked=True, busy=2):
    """Runs the program to its end several times, one after the other.

    Args:
      count: how many ends there are, at least; a cluster has one for each task.
      cluster: whether each program is a task of a cluster.
      forked: whether programs are spared their imports; they end as all do.
      busy: how many loops take the processor from them.

    Returns:
      How often there was each exit status, 128 + n after signal n.

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
            found.update(_run_together(processes, [sys.executable, str(program)], cluster, forked))
            print(f"{found.total()} ends: {dict(found)}", flush=True)
    return found


def _run_together(processes, command, cluster, forked):
    """Runs four programs, or a cluster of them, at a time; their exit statuses."""
    started = []
    with tempfile.TemporaryDirectory() as folder, _places(cluster) as places:
        for number, environment in enumerate(places):
            train_dir = f"{folder}/cluster" if cluster else f"{folder}/{number}"
            started.append(
                processes.start(
                    f"{Path(folder).name}-{number}",
                    [*command, train_dir],
                    guarded=False,
                    forked=forked,
                    **environment,
                )
            )
        statuses = [process.wait(_LIMIT_SECS) for process in started]
    for process, status in zip(started, statuses, strict=True):
        if status:
            print(process.log)
    return statuses


@contextlib.contextmanager
def _places(cluster):
    """What each process has in its environment."""
    if not cluster:
        yield [{}] * 4
        return
    with ReservedPorts(sum(CLUSTER.values())) as ports:
        hosts = iter(ports.addresses)
        spec = {job: [next(hosts) for _ in range(number)] for job, number in CLUSTER.items()}
        tasks = [(job, index) for job, number in CLUSTER.items() for index in range(number)]
        yield [
            {"TF_CONFIG": json.dumps({"cluster": spec, "task": {"type": job, "index": index}})}
            for job, index in tasks
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="ends, at least")
    parser.add_argument("--cluster", action="store_true", help="a cluster, not a program alone")
    parser.add_argument("--real", action="store_true", help="each program makes its imports")
    parser.add_argument("--busy", type=int, default=2, help="loops that keep the processor busy")
    options = parser.parse_args()
    start = time.monotonic()
    found = end_programs(options.count, options.cluster, not options.real, options.busy)
    print(f"exit statuses {dict(found)} in {time.monotonic() - start:.0f} s")
    sys.exit(int(set(found) != {0}))


if __name__ == "__main__":
    main()
