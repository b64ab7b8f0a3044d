"""How a training process takes its place in a cluster."""

import os
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import all_reduce
from model_deploy import cluster as cluster_lib
from model_deploy.cluster import Cluster
from model_deploy.config import DeploymentConfig
from model_deploy.training.replicas import say


class Place(NamedTuple):
    """What `train` needs to know of this process.

    Attributes:
      master: address of the TensorFlow server to use; '' for a session in this process.
      session_config: a `tf.ConfigProto`; None for that of `train`.
      cluster: the cluster whose worker it is; None on its own.
    """

    master: str = ""
    session_config: Any = None
    cluster: Cluster | None = None


def join(config: DeploymentConfig, cluster: Cluster | None, master: str = "") -> Place:
    """Starts the server of a worker, if it is one of a cluster.

    Server and session get the same `tf.ConfigProto`.  With parameter servers it sets
    `GRPC_FAIL_FAST` in the environment, unless it is set.

    Args:
      config: the deployment.
      cluster: the cluster and this process's task, a worker; None on its own.
      master: address of a server that was started elsewhere.

    Raises:
      OSError: if the port is taken, or the name of the host is not known.
    """
    proto = tf.ConfigProto(allow_soft_placement=True)
    if cluster is not None:
        proto = cluster_lib.session_config(cluster, proto)
        if cluster.ps_hosts:
            # Without it a step, or the end of a session, may wait in TensorFlow for a lost
            # parameter server, where no signal and no `stall_timeout` reaches it.
            os.environ.setdefault("GRPC_FAIL_FAST", "true")
    if config.all_reduce:
        proto = all_reduce.session_config(config, proto)
    if cluster is None:
        return Place(master, proto if config.all_reduce else None)
    return Place(cluster_lib.start_server(cluster, proto).target, proto, cluster)


def serve(cluster: Cluster, start_timeout: float) -> None:
    """Runs a parameter server until the chief says that the run has ended.

    Args:
      cluster: the cluster and this process's task, a ps.
      start_timeout: seconds to wait for the chief.

    Raises:
      OSError: if the port is taken, or the name of the host is not known.
      TimeoutError: if the chief did not start in time.
    """
    proto = cluster_lib.session_config(cluster)
    server = cluster_lib.start_server(cluster, proto)
    cluster_lib.serve_until_done(server, cluster, proto, start_timeout=start_timeout, report=say)
