"""Estimator in a cluster: our servers, which keep to their addresses and end with the run.

`TF_CONFIG` is as Estimator wants it, with a chief beside the workers, or as `model_deploy.launch`
gives it, where worker 0 is the chief.  TensorFlow's servers are those of workers and parameter
servers; the chief's is that of worker 0.  A process that has joined a Horovod job is in no cluster
of Estimator's: it trains on its own, and its `model_fn` exchanges gradients by Horovod's names.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import cluster as cluster_lib
from model_deploy import horovod, internals
from model_deploy.cluster import Cluster
from model_deploy.config import DeploymentConfig

# Seconds between a worker's looks whether the chief has initialized the variables.
_POLL_SECS = 0.5
# The error of a lost server among those of a step's parts, which TensorFlow lists.
_LISTED_LOSS = re.compile("^(ABORTED|UNAVAILABLE): ", re.MULTILINE)
# Seconds that the chief waits for workers at the end: one may have begun when all was done.
_GRACE_SECS = 10.0


def with_chief(tf_config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A `TF_CONFIG` whose worker 0 is the chief, if it names none, as Estimator wants one.

    >>> with_chief({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})
    {'cluster': {'chief': ['a:1'], 'worker': ['b:1']}, 'task': {'type': 'worker', 'index': 0}}
    """
    cluster, task = dict(tf_config.get("cluster") or {}), dict(tf_config.get("task") or {})
    if not cluster.get("worker") or "chief" in cluster or "master" in cluster:
        return tf_config
    chief, *workers = cluster.pop("worker")
    others = {"worker": workers} if workers else {}
    if task.get("type") == "worker":
        index = int(task.get("index", 0))
        task = {**task, "type": "worker" if index else "chief", "index": max(index - 1, 0)}
    return {**tf_config, "cluster": {"chief": [chief], **others, **cluster}, "task": task}


def _as_run_configs_see_it(tf_config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `TF_CONFIG` that each `RunConfig` reads: with a chief, and empty in a Horovod job."""
    return {} if _is_in_horovod_job() else with_chief(tf_config)


def _is_in_horovod_job() -> bool:
    return horovod.is_initialized() and horovod.size() > 1


def cluster_of(run_config: Any) -> Cluster | None:
    """The cluster of a `RunConfig`, its chief as worker 0; None for a process on its own."""
    spec = run_config.cluster_spec.as_dict() if run_config.cluster_spec else {}
    if not spec or run_config.task_type == "evaluator":
        return None
    chiefs = [*spec.get("master", ()), *spec.get("chief", ())]
    is_ps = run_config.task_type == "ps"
    return Cluster(
        (*chiefs, *spec.get("worker", ())),
        spec.get("ps", ()),
        "ps" if is_ps else "worker",
        run_config.task_id if is_ps else run_config.global_id_in_cluster,
    )


def config_of_cluster(config: DeploymentConfig, cluster: Cluster | None) -> DeploymentConfig:
    """The deployment with the replicas and parameter servers of a cluster.

    Raises:
      ValueError: if the deployment names others; as `DeploymentConfig`.
    """
    found: dict[str, Any] = {"num_replicas": 1, "num_ps_tasks": 0}
    if cluster is not None:
        found = {"num_replicas": len(cluster.workers), "num_ps_tasks": len(cluster.ps)}
    for name, value in found.items():
        given = getattr(config, name)
        if given not in (value, getattr(DeploymentConfig, name)):
            raise ValueError(f"{name} must be {value}, as TF_CONFIG says, got {given}")
    if cluster is None or cluster.job_name == "ps":
        return dataclasses.replace(config, **found)
    return dataclasses.replace(config, replica_id=cluster.task_id, **found)


def join(estimator: Any) -> None:
    """Gives an estimator the devices and sessions of its cluster, if it is in one.

    Raises:
      ValueError: if the process has joined a Horovod job since the `RunConfig` was made.
    """
    config, state = estimator.config, internals.EstimatorState(estimator)
    cluster = cluster_of(config)
    if cluster is None:
        return
    if _is_in_horovod_job():
        raise ValueError(
            "RunConfig must be made after hvd.init(), got one of a cluster of "
            f"{len(cluster.tasks)} tasks, in which Estimator would place variables and sessions"
        )
    cluster_lib.give_up_lost_servers(cluster)
    proto = config.session_config or tf.ConfigProto(allow_soft_placement=True)
    state.session_config = cluster_lib.session_config(cluster, proto)
    if config.device_fn is None:
        device_fn = tf.train.replica_device_setter(
            ps_tasks=len(cluster.ps_hosts), worker_device=cluster.own.device
        )
        state.set_device_fn(device_fn if cluster.ps_hosts else None)


def attach(training: Any) -> None:
    """Lets the package start and end clusters in this way.

    Args:
      training: its module that has `train_and_evaluate`.
    """
    internals.change_tf_config(training.run_config_lib.RunConfig, _as_run_configs_see_it)
    internals.replace_tasks(training, _start_server, _serve, _train)


def _start_server(estimator: Any) -> Any:
    """The server of this task, a worker; None for a process on its own."""
    cluster = cluster_of(estimator.config)
    if cluster is None or len(cluster.tasks) == 1:
        return None
    proto = internals.EstimatorState(estimator).session_config
    return cluster_lib.start_server(cluster, proto)


def _serve(estimator: Any) -> None:
    """Is a parameter server, until the chief ends."""
    cluster = cluster_of(estimator.config)
    if cluster is not None:
        server = cluster_lib.start_server(cluster, cluster_lib.session_config(cluster))
        cluster_lib.serve_until_done(server, cluster)


def _train(estimator: Any, train: Callable[[], Any]) -> Any:
    """Trains as a worker, and says when it has ended."""
    cluster = cluster_of(estimator.config)
    end_heeding = internals.heeding_errors_of_sessions(_as_lost)
    try:
        with internals.looking_for_variables_every(_POLL_SECS):
            result = train()
    finally:
        end_heeding()
    if cluster is not None and cluster.ps_hosts:
        proto = internals.EstimatorState(estimator).session_config
        with tf.Graph().as_default():
            ops = cluster_lib.build_end_ops(cluster)
            with tf.Session(estimator.config.master, config=proto) as session:
                cluster_lib.signal_done(session, ops, cluster, grace_secs=_GRACE_SECS)
    return result


def _as_lost(session: Any, error: Any) -> None:
    """Raises the error of a lost server, after which Estimator goes on in a new session."""
    del session
    if isinstance(error, tf.errors.CancelledError) and _LISTED_LOSS.search(error.message):
        raise tf.errors.AbortedError(error.node_def, error.op, error.message) from error
