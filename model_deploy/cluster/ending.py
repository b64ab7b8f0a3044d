"""How parameter servers learn that a run has ended.

Each ps task holds a queue for the end of the run, and ps 0 a second queue, for the workers that
are done: each puts its index into it. The chief, once it is done, waits a little for the other
workers and then puts a token into the first queue of each ps. A worker that died and never came
back holds nobody up.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.cluster.network import connection_error
from model_deploy.cluster.refusals import run_unless_refused
from model_deploy.cluster.server import session_config
from model_deploy.cluster.waiting import POLL_SECS, wait_for_tasks
from model_deploy.processes import Cluster, Task

# Time for the answer to the chief, and for its session to close, before a ps is gone.
_LINGER_SECS = 1.0
# Seconds in which a ps that accepts connections, but has only begun to serve, is told again.
_TRY_SECS = 20.0
_CAPACITY = 1_000_000


class EndOps(NamedTuple):
    """Ops of a worker's graph that signal its end; made by `build_end_ops`.

    Attributes:
      worker_ended: puts this worker's index into the queue on ps 0.
      next_ended: takes an index out of it, an int32 scalar, -1 if there is none.
      run_ended: one op per ps, which puts the token into its queue.
    """

    worker_ended: Any
    next_ended: Any
    run_ended: list[Any]


def build_end_ops(cluster: Cluster, container: str = "") -> EndOps | None:
    """Adds the ops for `signal_done` to the default graph; None without ps tasks.

    Args:
      cluster: the cluster and this process's task.
      container: TensorFlow's container for the queue of workers, which only the workers of this
        cluster are to see.
    """
    if not cluster.ps_hosts:
        return None
    with tf.name_scope("end_of_run"):
        with tf.container(container):
            workers = _queue(0, "ended_workers")
        with tf.device(_ps_device(0)):
            next_ended = tf.cond(workers.size() > 0, workers.dequeue, lambda: tf.constant(-1))
        return EndOps(
            worker_ended=workers.enqueue([cluster.task_id]),
            next_ended=next_ended,
            run_ended=[_end_op(task) for task in cluster.ps],
        )


def signal_done(
    session: Any,
    ops: EndOps | None,
    cluster: Cluster,
    *,
    grace_secs: float = 2.0,
    report: Callable[[str], Any] = print,
) -> None:
    """Says that this worker is done; the chief then ends the parameter servers.

    Args:
      session: a session that sees the parameter servers.
      ops: what `build_end_ops` returned.
      cluster: the cluster and this process's task.
      grace_secs: how long the chief waits for workers that are not done.
      report: called with a line that names the workers that were not done by then.
    """
    if ops is None:
        return
    if not cluster.is_chief:
        run_unless_refused(lambda: session.run(ops.worker_ended))
        return
    if missing := wait_for_workers(session, ops, cluster, grace_secs):
        names = ", ".join(f"worker {task.task_id}" for task in missing)
        report(f"the parameter servers end without {names}")
    end_servers(session, ops, cluster)


def end_servers(session: Any, ops: EndOps, cluster: Cluster) -> None:
    """Lets all parameter servers that can be reached end; called by the chief.

    Args:
      session: a session that sees the parameter servers.
      ops: what `build_end_ops` returned.
      cluster: the cluster.
    """
    # All at once: should this process die here, no ps is left over while others are gone.
    with contextlib.suppress(tf.errors.OpError):
        run_unless_refused(lambda: session.run(ops.run_ended))
        return
    # The session cannot reach a ps that was lost, even if it was started again since.
    left, end = list(cluster.ps), time.monotonic() + _TRY_SECS
    while left:
        left = [task for task in left if not _is_ended(task, session.sess_str, cluster)]
        if time.monotonic() >= end:
            return
        time.sleep(POLL_SECS if left else 0)


def _is_ended(ps: Task, target: Any, cluster: Cluster) -> bool:
    """Tries to let a ps end; returns whether it will, or is gone, as it refuses connections."""
    error = connection_error(ps)
    if error is not None:
        return isinstance(error, ConnectionRefusedError)
    try:
        _end_server(ps, target, cluster)
    except tf.errors.OpError:
        return False
    return True


def _end_server(ps: Task, target: Any, cluster: Cluster) -> None:
    """Lets a ps end by a session that sees no other."""
    config = tf.ConfigProto(device_filters=[ps.device, cluster.own.device])
    with tf.Graph().as_default():
        run_ended = _end_op(ps)
        with tf.Session(target, config=config) as session:
            run_unless_refused(lambda: session.run(run_ended))


def serve_until_done(
    server: Any,
    cluster: Cluster,
    config: Any = None,
    *,
    start_timeout: float = 300.0,
    report: Callable[[str], Any] = print,
    waits_for_chief: bool = True,
) -> None:
    """Serves as parameter server until the chief says that the run has ended.

    Args:
      server: what `start_server` returned.
      cluster: the cluster and this process's task, a ps.
      config: what `session_config` returned, the default.
      start_timeout: seconds to wait for the chief to be there for the first time.
      report: called with lines that say which tasks it waits for.
      waits_for_chief: whether to wait for worker 0, which in an elastic run may never be there.

    Raises:
      ValueError: if this process is not a ps.
      TimeoutError: if the chief did not start in time.
    """
    if cluster.job_name != "ps":
        raise ValueError(f"job_name must be ps to serve, got {cluster.job_name!r}")
    with tf.Graph().as_default():
        queue = _queue(cluster.task_id, "run_ended")
        size = queue.size()
        config = session_config(cluster) if config is None else config
        with tf.Session(server.target, config=config) as session:
            # Asked for again and again: a blocked dequeue would also block Ctrl-C.
            ask = session.make_callable(size)

            def has_ended() -> bool:
                return bool(run_unless_refused(ask))

            chiefs = cluster.workers[:1] if waits_for_chief else ()
            wait_for_tasks(chiefs, start_timeout, report=report, stop=has_ended)
            while not has_ended():
                time.sleep(POLL_SECS)
            time.sleep(_LINGER_SECS)


def wait_for_workers(
    session: Any,
    ops: EndOps,
    cluster: Cluster,
    grace_secs: float,
    *,
    is_gone: Callable[[Task], bool] = lambda task: True,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Task]:
    """Waits for the other workers to be done; called by the chief.

    Args:
      session: a session that sees the parameter servers.
      ops: what `build_end_ops` returned.
      cluster: the cluster.
      grace_secs: how long a worker that is gone has to come back and be done.
      is_gone: asked, when the grace is over, about each worker that is not done; if one of them
        is not gone, the grace begins anew.
      meanwhile: called again and again while it waits.

    Returns:
      The workers that were not done when the grace was over.
    """
    missing = {task.task_id: task for task in cluster.workers[1:]}
    end = time.monotonic() + grace_secs
    while missing:
        ended = run_unless_refused(lambda: session.run(ops.next_ended))
        if ended >= 0:
            missing.pop(int(ended), None)
        elif time.monotonic() < end:
            meanwhile()
            time.sleep(POLL_SECS)
        elif all(is_gone(task) for task in missing.values()):
            break
        else:
            end = time.monotonic() + grace_secs
    return list(missing.values())


def _end_op(ps: Task) -> Any:
    """An op that puts the token into the queue of a ps."""
    return _queue(ps.task_id, "run_ended").enqueue([1])


def _queue(ps_task: int, name: str) -> Any:
    """A queue on a ps that all processes share by its name."""
    with tf.device(_ps_device(ps_task)):
        return tf.FIFOQueue(_CAPACITY, [tf.int32], [[]], shared_name=f"model_deploy/{name}")


def _ps_device(task_id: int) -> str:
    return f"/job:ps/task:{task_id}/device:CPU:0"
