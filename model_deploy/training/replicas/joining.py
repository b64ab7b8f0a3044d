"""Finds a training process's place in a cluster, and starts its server."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import cluster as cluster_lib
from model_deploy import deployment
from model_deploy.cluster import WORLD_FILE, Cluster, ClusterOptions
from model_deploy.config import DeploymentConfig
from model_deploy.training.ledger import Ledger
from model_deploy.training.replicas.replicas import StepWatch, say

_START_TIMEOUT = 300.0


class Place(NamedTuple):
    """The place of a process among those that train together, for `train`.

    Attributes:
      master: address of the TensorFlow server to use; '' for a session in this process, or while
        a worker's server is not started yet.
      session_config: a `tf.ConfigProto`; None for the default of `train`.
      cluster: the cluster in which the process is a worker; None for a single process.
      start_timeout: seconds to wait for other tasks of the cluster at the start.
      watch: in an elastic run, watches the steps in place of a `StallWatch`; else None.
      ledger: in an elastic run, what this process has spent its time on in all worlds; else None.
      saved: in an elastic run, paths of the checkpoints that this process has written; else None.
    """

    master: str = ""
    session_config: Any = None
    cluster: Cluster | None = None
    start_timeout: float = _START_TIMEOUT
    watch: StepWatch | None = None
    ledger: Ledger | None = None
    saved: list[str] | None = None

    @property
    def is_chief(self) -> bool:
        """Whether the process initializes the variables and writes the files."""
        return self.cluster is None or self.cluster.is_chief

    @property
    def is_evaluator(self) -> bool:
        """Whether the process is to evaluate the checkpoints that the cluster saves."""
        return self.cluster is not None and self.cluster.is_evaluator

    def deployment(self, config: DeploymentConfig, **settings: Any) -> DeploymentConfig:
        """Returns the deployment with the replicas and parameter servers of the cluster.

        A process without a cluster, and an evaluator, which is outside of it, have the deployment
        as it is.

        Args:
          config: the deployment, as it is for one process alone.
          **settings: fields of `DeploymentConfig` that go with the cluster, such as
            `replicas_to_aggregate` and `rotate_steps`; without a cluster they are left out.

        Raises:
          ValueError: if the cluster does not fit the deployment.
        """
        if self.cluster is None or self.is_evaluator:
            return config
        return dataclasses.replace(
            config,
            replica_id=self.cluster.task_id,
            num_replicas=len(self.cluster.workers),
            num_ps_tasks=len(self.cluster.ps),
            **settings,
        )


def join_cluster(
    environ: Mapping[str, str],
    options: ClusterOptions | None = None,
    *,
    task: int = 0,
    master: str = "",
    num_ps_tasks: int = 0,
) -> Place:
    """Finds the place of this process; a parameter server serves until the run has ended.

    Prints one line that says where the description of the cluster came from.  A worker then builds
    its model for `place.deployment(config)`; `train(..., place=place)` starts its server.  An
    evaluator (`place.is_evaluator`) takes its checkpoints from a `CheckpointWatch`.  Without a
    description of a cluster the process trains alone.

    A parameter server, and under SLURM a worker that shares its machine's GPUs with others, sets
    `CUDA_VISIBLE_DEVICES` in the environment; see `cluster.own_gpus`.

    Args:
      environ: the environment variables, `os.environ`: `TF_CONFIG`, or those of SLURM.
      options: the cluster options; by default only the environment counts.
      task: value of `--task`, used where `options.task_id` is None.
      master: address of a server that was started elsewhere; with one there is no cluster.
      num_ps_tasks: how many of SLURM's tasks are parameter servers.

    Raises:
      ValueError: as `cluster.resolve`.
      SystemExit: with 0, in a parameter server, once the chief says that the run has ended.
      OSError: if the port of a parameter server is taken, or its host's name is not known.
      TimeoutError: in a parameter server, if the chief did not start in time.
    """
    options = options or ClusterOptions()
    cluster, note = cluster_lib.resolve(
        options, environ, task=task, master=master, num_ps_tasks=num_ps_tasks
    )
    gpus_to_see = None if cluster is None else cluster_lib.own_gpus(environ, cluster)
    if gpus_to_see is not None:
        # CUDA reads the variable at the first use of a GPU.
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus_to_see
        note += f"; CUDA_VISIBLE_DEVICES={gpus_to_see}"
    if cluster is not None or master:
        print(note, flush=True)
    if cluster is not None and cluster.job_name == "ps":
        # In an elastic run worker 0 may be lost before this server sees it, and others train on.
        serve(cluster, options.start_timeout, waits_for_chief=not environ.get(WORLD_FILE))
        raise SystemExit(0)
    return Place(master, None, cluster, options.start_timeout)


def join(config: DeploymentConfig, cluster: Cluster | None, master: str = "") -> Place:
    """Starts a worker's server, if there is a cluster; returns the worker's place.

    Server and session get the same `tf.ConfigProto`.  With parameter servers `GRPC_FAIL_FAST` is
    set in the environment, if it is not set already.

    Args:
      config: the deployment.
      cluster: the cluster and this process's task, a worker; None for a single process.
      master: address of a server that was started elsewhere.

    Raises:
      OSError: if the port is taken, or the host's name is unknown.
    """
    proto = session_config(config, cluster)
    if cluster is None:
        return Place(master, proto)
    cluster_lib.give_up_lost_servers(cluster)
    return Place(cluster_lib.start_server(cluster, proto).target, proto, cluster)


def session_config(
    config: DeploymentConfig, cluster: Cluster | None = None, base: Any = None
) -> Any:
    """Returns the options that sessions of a deployment, and a worker's server, need.

    Args:
      config: the deployment.
      cluster: the cluster and this process's task, a worker; None for a single process.
      base: a `tf.ConfigProto` to copy and extend; by default one with soft placement.

    Returns:
      A `tf.ConfigProto`.
    """
    proto = tf.ConfigProto(allow_soft_placement=True) if base is None else base
    if cluster is not None:
        proto = cluster_lib.session_config(cluster, proto)
    return deployment.session_config(config, proto)


def started(place: Place, config: DeploymentConfig | None) -> Place:
    """Returns the place after starting the worker's server, if one is to be started.

    Args:
      place: the result of `join_cluster` or `join`.
      config: the deployment; None for a model that `deploy` did not make.

    Raises:
      ValueError: if there is a server to start and no deployment; for an evaluator.
      OSError: as `join`.
    """
    if place.is_evaluator:
        raise ValueError("place must be that of a worker to train, got that of the evaluator")
    if place.session_config is not None or (place.cluster is not None and place.master):
        return place
    if config is None:
        if place.cluster is None:
            return place
        raise ValueError(
            "model must be one of deploy to train in a cluster, got one without its config"
        )
    joined = join(config, place.cluster, place.master)
    return joined._replace(start_timeout=place.start_timeout)


def serve(cluster: Cluster, start_timeout: float, *, waits_for_chief: bool = True) -> None:
    """Runs a parameter server until the chief says that the run has ended.

    Args:
      cluster: the cluster and this process's task, a ps.
      start_timeout: seconds to wait for the chief.
      waits_for_chief: whether to wait for the chief at the start.

    Raises:
      OSError: if the port is taken, or the host's name is unknown.
      TimeoutError: if the chief did not start in time.
    """
    proto = cluster_lib.session_config(cluster)
    server = cluster_lib.start_server(cluster, proto)
    cluster_lib.serve_until_done(
        server,
        cluster,
        proto,
        start_timeout=start_timeout,
        report=say,
        waits_for_chief=waits_for_chief,
    )
