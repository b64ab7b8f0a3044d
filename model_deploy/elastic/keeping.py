"""What a worker keeps from one world to the next, by the way to train.

By all-reduce it is the values of the variables, in its memory.  Parameter servers have those; there
it is the worker's own TensorFlow server, at the one address that they know.
"""

from collections.abc import Mapping

import tensorflow.compat.v1 as tf

from model_deploy.checkpoints import is_lost_connection
from model_deploy.cluster import Cluster, World, cluster_from_tf_config, is_refusal, unreachable
from model_deploy.config import DeploymentConfig
from model_deploy.elastic.memory import Memory
from model_deploy.hooks import session_hooks
from model_deploy.parameter_servers import Fence, note_fence
from model_deploy.training import Place, join, join_cluster

# How many worlds in a row may end without a step as the connection to a server is lost.
_MOST_LOST = 20


class KeptInMemory:
    """The values of the variables, which a worker by all-reduce keeps.

    Attributes:
      memory: values of the variables; none with parameter servers.
      servers: the cluster of parameter servers; None for all-reduce.
    """

    servers: Cluster | None = None

    def __init__(self) -> None:
        self.memory = Memory()

    @property
    def step(self) -> int | None:
        """The number of the last step that is known; None at the start."""
        return self.memory.step

    def prepare(self, world: World, config: DeploymentConfig) -> None:
        """Makes in the default graph what a world needs before the model is built: nothing."""

    def place(self, config: DeploymentConfig, cluster: Cluster) -> Place:
        """The place of this worker in a world, with a new server for that world."""
        return join(config, cluster)

    def asks_after(self, error: Exception) -> bool:
        """Whether an error of this worker alone takes another world, which nobody else knows of.

        By all-reduce never: whoever ends a step is gone, and others know that.

        Raises:
          Exception: the error itself, if that has been tried enough.
        """
        del error
        return False

    def leave(self, place: Place, *, is_next_chief: bool) -> None:
        """Takes the values of the variables from the server of a world that is over."""
        del is_next_chief
        self.memory.reader()(place.master, place.session_config)


class KeptOnServers:
    """The server of a worker, whose variables are on parameter servers.

    Args:
      servers: the cluster of all addresses, and the task of this worker in it.
    """

    def __init__(self, servers: Cluster) -> None:
        self.memory = Memory()
        self.servers = servers
        self.step: int | None = None
        self._losses = 0  # in a row, before a step was made
        self._place: Place | None = None

    def prepare(self, world: World, config: DeploymentConfig) -> None:
        """Makes the global step, and the fence that lets only this world's chief update it."""
        servers = self.servers.ps
        fence = Fence(world.generation, f"{servers[0].device}/device:CPU:0", len(servers))
        note_fence(fence)
        with tf.device(config.variables_device()):
            tf.train.get_or_create_global_step()

    def place(self, config: DeploymentConfig, cluster: Cluster) -> Place:
        """The place of this worker in a world, with the one server of this process."""
        if self._place is None:
            self._place = join(config, self.servers)
        return self._place._replace(cluster=cluster)

    def asks_after(self, error: Exception) -> bool:
        """After a step that was cut short: nobody knows what of it counts on the servers."""
        if not (is_lost(error) or is_refusal(error)):
            return False
        self._losses += 1
        if self._losses > _MOST_LOST:
            raise error
        return True

    def leave(self, place: Place, *, is_next_chief: bool) -> None:
        """Looks at the step; the next chief frees memory of the servers."""
        if unreachable(self.servers.ps):
            return
        try:
            with tf.Session(place.master, config=place.session_config) as session:
                step = int(session.run(tf.train.get_global_step()))
                self._losses = 0 if step != self.step else self._losses
                self.step = step
                for hook in session_hooks():
                    if is_next_chief and hasattr(hook, "leave"):
                        hook.leave(session)
        except tf.errors.OpError:
            pass  # a server was lost, or a chief that is stopped waits for what is to be freed


Kept = KeptInMemory | KeptOnServers


def is_lost(error: Exception | None) -> bool:
    """Whether an error of a world tells of somebody who is gone."""
    return error is not None and (isinstance(error, ConnectionError) or is_lost_connection(error))


def servers_of(environ: Mapping[str, str]) -> Cluster | None:
    """The parameter servers of an elastic run; a parameter server serves here until it has ended.

    Args:
      environ: environment variables, `os.environ`, of which it reads `TF_CONFIG`.

    Returns:
      The cluster of all addresses that there are, and the task of this worker in it; None for
      all-reduce.

    Raises:
      ValueError: as `cluster_from_tf_config`.
      SystemExit: as `join_cluster`.
    """
    text = environ.get("TF_CONFIG", "")
    if not text.strip() or not cluster_from_tf_config(text).ps_hosts:
        return None
    return join_cluster(environ).cluster


def kept_on(servers: Cluster | None) -> Kept:
    """The object that keeps a worker's variables: on the parameter servers, or in its memory."""
    return KeptInMemory() if servers is None else KeptOnServers(servers)
