"""The job that this process has joined by `init`, its server, and the sessions that open there."""

import copy
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from model_deploy import cluster as cluster_lib
from model_deploy import internals
from model_deploy.horovod.environment import Job, job_of
from model_deploy.horovod.watch import PeerWatch
from model_deploy.processes import visible_gpus

# Horovod's names of levels -> those of absl.
_LEVELS = {"trace": "debug"}
# TensorFlow cannot stop a server: it serves after `shutdown`, and for the next `init`.
_servers: dict[str, Any] = {}
_starting = threading.Lock()


class World:
    """A job that has been joined.

    Args:
      job: the job, and the place of this process in it.

    Attributes:
      job: as given.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self._at_end: list[Callable[[], None]] = []
        self._is_watched = False

    def take_sessions(self) -> None:
        """From now on sessions that name no server open at that of this process.

        A step that TensorFlow refuses ends the process: others have begun it, and
        `tf.train.MonitoredSession` would make it again.
        """
        self._at_end.append(
            internals.opening_sessions_by(
                lambda config: (self.target(config), self.session_config(config))
            )
        )
        self._at_end.append(internals.heeding_errors_of_sessions(self._heed))

    def _heed(self, session: Any, error: Any) -> None:
        """Ends after a refused step; lets another process end first that has given a step up."""
        is_main = threading.current_thread() is threading.main_thread()  # else it would not end
        cluster = self.job.cluster
        if cluster is None or tf.compat.as_text(session.sess_str) != self.target() or not is_main:
            return
        if cluster_lib.is_refusal(error):
            cluster_lib.end_after_refusal(error, "a step")
        if cluster_lib.is_given_up(error):
            cluster_lib.wait_for_loss(cluster_lib.tasks_needed(cluster), self.job.start_timeout)

    def leave(self) -> None:
        """Ends what `take_sessions` and the watch do."""
        while self._at_end:
            self._at_end.pop()()

    def session_config(self, base: Any = None) -> Any:
        """A `tf.ConfigProto` for server and sessions; `base` is one to start from, or None."""
        cluster = self.job.cluster
        if cluster is None or self.job.size == 1:
            return base
        proto = cluster_lib.session_config(cluster, base)
        # Each session sees this process alone, and has variables of its own, as without a server.
        proto.device_filters.append(cluster.own.device)
        proto.isolate_session_state = True
        proto.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
        return proto

    def target(self, config: Any = None) -> str:
        """Address of the server of this process, which is started when it is first asked for.

        Args:
          config: a `tf.ConfigProto` with settings of GPUs and threads for the server.

        Raises:
          TimeoutError: naming the processes that did not start in time.
        """
        cluster = self.job.cluster
        if cluster is None or self.job.size == 1:
            return ""
        address = cluster.own.address
        with _starting:
            if address not in _servers:
                proto = self.session_config(_with_gpus_that_are_there(config))
                _servers[address] = cluster_lib.start_server(cluster, proto)
            target = str(_servers[address].target)
            if not self._is_watched:
                others = cluster_lib.tasks_needed(cluster)
                cluster_lib.wait_for_tasks(others, self.job.start_timeout, report=say)
                self._at_end.append(PeerWatch(others, target, say, self.job.stall_secs).end)
                self._is_watched = True
            return target


def _with_gpus_that_are_there(config: Any) -> Any:
    """The `tf.ConfigProto`, without a list of GPUs of which this process does not see so many.

    Programs choose the GPU of their local rank; a launcher may have given each process one.
    """
    visible = visible_gpus.listed(os.environ)
    chosen = "" if config is None else config.gpu_options.visible_device_list
    if visible is None or not chosen:
        return config
    if all(int(number) < len(visible) for number in chosen.split(",")):
        return config
    say(f"visible_device_list={chosen} is left out: this process sees {len(visible)} GPU(s)")
    config = copy.deepcopy(config)
    config.gpu_options.visible_device_list = ""
    return config


def say(text: str) -> None:
    """Prints a line at once, on the standard error."""
    print(text, file=sys.stderr, flush=True)


_joined: list[World] = []


def init(comm: Any = None, process_sets: Any = None, *, default_sessions: bool = True) -> None:
    """Joins the job that the environment describes: `TF_CONFIG`, SLURM, `HOROVOD_*`.

    A process that nobody has launched is a job of its own.

    Args:
      comm: None; processes cannot be chosen.
      process_sets: None; there is one set, of all.
      default_sessions: whether in this process each session that names no server, those that
        `tf.train.MonitoredTrainingSession` and Keras open included, opens at the server of this
        process, which collective ops need.  Without it sessions are opened by
        `tf.Session(session_target(), config=session_config())`.

    Raises:
      ValueError: as `environment.job_of`, and for `comm` or `process_sets`.
    """
    for name, value in {"comm": comm, "process_sets": process_sets}.items():
        if value is not None:
            raise ValueError(f"{name} must be None: the job is all its processes, got {value!r}")
    if _joined:
        return
    world = World(job_of(os.environ))
    if world.job.log_level is not None:
        logging.set_verbosity(_LEVELS.get(world.job.log_level, world.job.log_level))
    if world.job.unheeded and world.job.rank == 0:
        say(f"these variables change nothing here: {', '.join(world.job.unheeded)}")
    if default_sessions and world.job.size > 1:
        world.take_sessions()
    _joined.append(world)


def shutdown() -> None:
    """Leaves the job; sessions open without a server again."""
    while _joined:
        _joined.pop().leave()


def is_initialized() -> bool:
    """Whether `init` has been called."""
    return bool(_joined)


def joined() -> World:
    """The job that was joined.

    Raises:
      ValueError: before `init`.
    """
    if not _joined:
        raise ValueError("hvd.init() must be called first, got a call before it")
    return _joined[-1]


def rank() -> int:
    """Index of this process in the job."""
    return joined().job.rank


def size() -> int:
    """Number of processes of the job."""
    return joined().job.size


def local_rank() -> int:
    """Index of this process among those of its machine."""
    return joined().job.local_rank


def local_size() -> int:
    """Number of processes on this machine."""
    return joined().job.local_size


def cross_rank() -> int:
    """Index of this machine among those that have a process of this `local_rank`."""
    return joined().job.cross_rank


def cross_size() -> int:
    """Number of machines that have a process of this `local_rank`."""
    return joined().job.cross_size


def is_homogeneous() -> bool:
    """Whether all machines have as many processes."""
    job = joined().job
    return job.cross_size * job.local_size == job.size


def session_target(config: tf.ConfigProto = None) -> str:
    """The server of this process for `tf.Session`; '' for a job of one process.

    Args:
      config: a `tf.ConfigProto` with settings of GPUs and threads, for the first call.

    Raises:
      ValueError: before `init`.
      TimeoutError: naming the processes that did not start in time.
    """
    return joined().target(config)


def session_config(base: tf.ConfigProto = None) -> tf.ConfigProto:
    """A `tf.ConfigProto` for sessions at `session_target()`.

    Args:
      base: one to start from; it is not changed.

    Raises:
      ValueError: before `init`.
    """
    return joined().session_config(base)
