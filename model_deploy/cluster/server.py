"""The TensorFlow server of a task, and the session configuration that belongs to it."""

import contextlib
import copy
import os
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.cluster import network
from model_deploy.cluster.listening import check_address_of, keep_to
from model_deploy.cluster.refusals import run_unless_refused
from model_deploy.processes import Cluster, Task

# A little less than 32 MiB.
_LARGEST_BLOCK = (32 << 20) - (64 << 10)


def session_config(cluster: Cluster, base: Any = None) -> Any:
    """The `ConfigProto` for the server and the sessions of this process.

    A worker sees itself and the parameter servers only, so that it starts without the
    other workers; without parameter servers all workers see each other. Parameter
    servers see themselves, and no GPU.

    TensorFlow's threads look for work in a loop for a while before they sleep. Where several
    tasks share a machine that takes processor time from the others, so there they do not
    (`experimental.disable_thread_spinning`).

    Args:
      cluster: the cluster and this process's task.
      base: a `tf.ConfigProto` with other settings; it is not changed.

    Returns:
      A `tf.ConfigProto`.
    """
    config = tf.ConfigProto() if base is None else copy.deepcopy(base)
    del config.device_filters[:]
    if cluster.job_name == "ps":
        config.device_filters.append(cluster.own.device)
        config.device_count["GPU"] = 0
    elif cluster.ps_hosts:
        config.device_filters.extend(["/job:ps", cluster.own.device])
    if sum(task.host == cluster.own.host for task in cluster.tasks) > 1:
        config.experimental.disable_thread_spinning = True
    return config


def start_server(cluster: Cluster, config: Any) -> Any:
    """Starts this task's server, reachable at its own address only.

    Where the address is none of this machine's (a service name of Kubernetes, say) the server can
    be reached at all private ones, and a warning says so.  `Cluster.allow_public_addresses` lets
    it listen on public addresses, too, and on all of the machine's, with a warning.

    Args:
      cluster: the cluster and this process's task.
      config: what `session_config` returned; sessions get the same.

    Returns:
      A `tf.distribute.Server`; sessions connect to its `target`. It lives until the
      process ends.

    Raises:
      ValueError: for an evaluator, which has no server; for an address that is public, or that
        stands for all, unless it is allowed.
      OSError: if the port is taken, or the name of the host is not known; if the system cannot
        keep the server to its address, unless public addresses are allowed.
    """
    own = cluster.own
    if cluster.is_evaluator:
        raise ValueError("job_name must be worker or ps to start a server, got 'evaluator'")
    addresses = _own_addresses(own)
    check_address_of(cluster)
    if network.is_port_taken(own.port):
        raise OSError(
            f"{own.job_name}_hosts[{own.task_id}] must name a free port, got {own.address!r}: "
            "another process listens there"
        )
    try:
        server = tf.distribute.Server(
            cluster.as_dict(), own.job_name, own.task_id, config=config, start=False
        )
    except tf.errors.UnknownError as error:
        raise OSError(f"{own} could not listen on {own.address}: {error.message}") from error
    # Until the server is started it answers no request: none is answered at a wrong address.
    keep_to(cluster, addresses)
    if _is_leader(own, config):
        run_unless_refused(lambda: internals.number_collective_steps(server.target, own.device))
    server.start()
    _keep_freed_memory()
    _give_way()
    return server


def _is_leader(own: Task, config: Any) -> bool:
    """Whether a task numbers the steps of the collective ops of all; `config` may be None."""
    if config is None:
        return False
    leader = tf.DeviceSpec.from_string(config.experimental.collective_group_leader)
    return bool(leader.replace(replica=None) == tf.DeviceSpec.from_string(own.device))


def give_up_lost_servers(cluster: Cluster) -> None:
    """Lets the steps of this process end when they need a parameter server that is lost.

    Sets `GRPC_FAIL_FAST` in the environment, if there are parameter servers and it is not set.
    Otherwise a step, or the closing of a session, may wait in TensorFlow, where neither signals nor
    `stall_timeout` have an effect.

    Args:
      cluster: the cluster and this process's task, a worker whose server is not started yet.
    """
    if cluster.ps_hosts:
        os.environ.setdefault("GRPC_FAIL_FAST", "true")


def _keep_freed_memory() -> None:
    """Lets the C library keep the memory of a step's tensors for the tensors of the next step.

    glibc returns free memory to the system, which costs a page fault for each 4 KiB of the
    next step, unless it is less than twice the largest block that was ever given back whole,
    of up to 32 MiB (mallopt(3), M_MMAP_THRESHOLD).  Other libraries take no notice.
    """
    bytearray(_LARGEST_BLOCK)  # and free again


def _give_way() -> None:
    """Lets the thread of TensorFlow that ends a step go on before this thread, which waits for it.

    Otherwise Linux often lets this thread run at once, on the same core, and the server clears up
    behind a step that still holds its `Rendezvous`.  TensorFlow then keeps that for as long as the
    process lives, some 550 bytes (`framework/local_rendezvous.h`): by all-reduce in one of eight
    tiny steps or more.  A thread of SCHED_BATCH takes a core from no other (sched(7)); threads and
    processes that it starts inherit that.  Other systems take no notice, and some containers do
    not allow it.
    """
    with contextlib.suppress(AttributeError, OSError):
        if os.sched_getscheduler(0) == os.SCHED_OTHER:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _own_addresses(own: Task) -> list[network.IPAddress]:
    try:
        return network.resolve_host(own.host)
    except OSError as error:
        raise OSError(
            f"{own.job_name}_hosts[{own.task_id}] must name a known host, got {own.address!r}: "
            f"{error.strerror}"
        ) from error
