"""Jobs of several processes inside the test process: a graph, a thread and a server for each."""

import concurrent.futures
import contextlib
import threading

import tensorflow.compat.v1 as tf

from model_deploy.horovod import environment, world
from tests import clusters
from tests.goldens import cpu_config


@contextlib.contextmanager
def joined_as(rank=0, size=1, **settings):
    """A job that has been joined, without a server."""
    joined = world.World(
        environment.Job(rank=rank, size=size, local_rank=rank, local_size=size, **settings)
    )
    world._joined.append(joined)
    try:
        yield joined
    finally:
        world._joined.remove(joined)


def _proto(rank=None):
    proto = cpu_config(1)
    proto.isolate_session_state = True
    proto.experimental.collective_group_leader = clusters.LEADER
    if rank is not None:
        proto.device_filters.append(f"/job:worker/task:{rank}")
    return proto


def run_job(size, build, runs=1, **settings):
    """What each process of a job fetches, in the order of ranks.

    Args:
      size: number of processes.
      build: takes a rank, and returns the fetches of a run, and others that come after all runs.
      runs: how often the first ones are run, by all processes at once.
      **settings: of the `Job`.
    """
    graphs = []
    for rank in range(size):
        with tf.Graph().as_default() as graph, joined_as(rank, size, **settings):
            tf.set_random_seed(1)
            fetches = build(rank)
            init = tf.global_variables_initializer(), tf.local_variables_initializer()
            graphs.append((graph, init, fetches))
    together = threading.Barrier(size, timeout=60)
    targets = clusters.workers(size) if size > 1 else [""]

    def run(rank):
        graph, init, (each, last) = graphs[rank]
        proto = _proto(rank if size > 1 else None)
        with tf.Session(targets[rank], graph=graph, config=proto) as session:
            session.run(init)
            found = [session.run(each) for _ in range(runs)]
            values = session.run(last)
            together.wait()
            return found, values

    with concurrent.futures.ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size)))


def run_monitored(size, build, folder):
    """What each process of a job has after a step in a `MonitoredTrainingSession`.

    Args:
      size: number of processes.
      build: takes a rank; returns a hook, the op of a step, and fetches after it.
      folder: for checkpoints of the first process.
    """
    graphs = []
    for rank in range(size):
        with tf.Graph().as_default() as graph, joined_as(rank, size):
            graphs.append((graph, *build(rank)))
    targets = clusters.workers(size) if size > 1 else [""]

    def run(rank):
        graph, hook, step, last = graphs[rank]
        with (
            graph.as_default(),
            tf.train.MonitoredTrainingSession(
                targets[rank],
                config=_proto(rank if size > 1 else None),
                checkpoint_dir=None if rank else str(folder),
                hooks=[hook],
            ) as session,
        ):
            session.run(step)
            return session.run(last)

    with concurrent.futures.ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size)))
