"""Estimator in a cluster: our servers, which keep to their addresses and end with the run.

`TF_CONFIG` is as Estimator wants it, with a chief beside the workers, or as `model_deploy.launch`
gives it, where worker 0 is the chief.  TensorFlow's servers are those of workers and parameter
servers; the chief's is that of worker 0.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import cluster as cluster_lib
from model_deploy import internals
from model_deploy.cluster import Cluster
from model_deploy.config import DeploymentConfig

# Seconds between a worker's looks whether the chief has initialized the variables.
_POLL_SECS = 0.5


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
    """Gives an estimator the devices and sessions of its cluster, if it is in one."""
    config = estimator.config
    cluster = cluster_of(config)
    if cluster is None:
        return
    if cluster.ps_hosts:
        # Else a step may wait in TensorFlow for a parameter server that is lost.
        os.environ.setdefault("GRPC_FAIL_FAST", "true")
    proto = tf.ConfigProto(allow_soft_placement=True)
    if config.session_config is not None:
        proto.CopyFrom(config.session_config)
    del proto.device_filters[:]
    estimator._session_config = cluster_lib.session_config(cluster, proto)
    if config.device_fn is None:
        estimator._device_fn = None
        if cluster.ps_hosts:
            estimator._device_fn = tf.train.replica_device_setter(
                ps_tasks=len(cluster.ps_hosts), worker_device=cluster.own.device
            )


def attach(run_config: Any, executor: Any) -> None:
    """Lets the package start and end clusters in this way.

    Args:
      run_config: its `RunConfig`.
      executor: its class that runs `train_and_evaluate`.
    """
    name = "_init_distributed_setting_from_environment_var"
    original = getattr(run_config, name)
    setattr(run_config, name, lambda self, tf_config: original(self, with_chief(tf_config)))
    executor._start_std_server = _start_server
    executor._start_distributed_training = _ending(executor._start_distributed_training)
    executor.run_ps = _serve


def _start_server(self: Any, config: Any) -> Any:
    """In place of the executor's method: a server of this task."""
    cluster = cluster_of(config)
    if cluster is None or len(cluster.tasks) == 1:
        return None
    return cluster_lib.start_server(cluster, self._estimator._session_config)


def _serve(self: Any) -> None:
    """In place of the executor's method: a parameter server, until the chief ends."""
    cluster = cluster_of(self._estimator.config)
    if cluster is not None:
        server = cluster_lib.start_server(cluster, cluster_lib.session_config(cluster))
        cluster_lib.serve_until_done(server, cluster)


def _ending(original: Any) -> Any:
    @functools.wraps(original)
    def train(self: Any, *args: Any, **kwargs: Any) -> Any:
        cluster = cluster_of(self._estimator.config)
        with internals.looking_for_variables_every(_POLL_SECS):
            result = original(self, *args, **kwargs)
        if cluster is None or not cluster.ps_hosts:
            return result
        with tf.Graph().as_default():
            ops = cluster_lib.build_end_ops(cluster)
            master, proto = self._estimator.config.master, self._estimator._session_config
            with tf.Session(master, config=proto) as session:
                cluster_lib.signal_done(session, ops, cluster)
        return result

    return train
