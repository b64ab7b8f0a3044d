"""State that a worker keeps between two worlds, by the way to train.

By all-reduce a worker keeps the values of the variables in memory.  With parameter servers, which
have the variables, it keeps its TensorFlow server, as they know its address.
"""

from collections.abc import Mapping

import tensorflow.compat.v1 as tf

from model_deploy.checkpoints import is_lost_connection
from model_deploy.cluster import (
    Cluster,
    World,
    cluster_from_tf_config,
    is_given_up,
    is_refusal,
    unreachable,
)
from model_deploy.config import DeploymentConfig
from model_deploy.elastic.memory import Memory
from model_deploy.hooks import session_hooks
from model_deploy.parameter_servers import Fence, note_fence
from model_deploy.training import Place, join, join_cluster

# How many worlds in a row a worker may end by errors of its own without a step between.
_MOST_IN_A_ROW = 20


class _InARow:
    """Counts errors without a step between."""

    def __init__(self) -> None:
        self._count = 0
        self._step: int | None = None

    def note(self, error: Exception, step: int | None) -> None:
        """Counts an error after a step; raises it if it is one too many."""
        self._count = self._count + 1 if step == self._step else 1
        self._step = step
        if self._count > _MOST_IN_A_ROW:
            raise error


class KeptInMemory:
    """Keeps the values of the variables in a worker's memory, by all-reduce.

    Attributes:
      memory: values of the variables.
      servers: None: there are no parameter servers.
      past_worlds: how many TensorFlow servers this process has, one for each world it was in.
    """

    servers: Cluster | None = None

    def __init__(self) -> None:
        self.memory = Memory()
        self.past_worlds = 0
        self._errors = _InARow()

    @property
    def step(self) -> int | None:
        """The last step that this worker knows of; None at the start."""
        return self.memory.step

    def prepare(self, world: World, config: DeploymentConfig) -> None:
        """Prepares the default graph for a world, before the model is built: nothing to do."""

    def place(self, config: DeploymentConfig, cluster: Cluster) -> Place:
        """Joins a world with a new TensorFlow server for that world."""
        self.past_worlds += 1
        return join(config, cluster)

    def asks_after(self, error: Exception) -> bool:
        """Whether this worker must ask for another world after an error that only it may know of.

        By all-reduce if TensorFlow has refused a part of a step, in which other workers may wait.
        The launcher itself notices if a worker is lost, for which steps fail, too.

        Raises:
          Exception: the error itself, after too many attempts.
        """
        if not (is_refusal(error) or is_given_up(error)):
            return False
        self._errors.note(error, self.step)
        return True

    def leave(self, place: Place, *, is_next_chief: bool) -> None:
        """Reads the variables' values from the server of a world that is over."""
        del is_next_chief
        self.memory.reader()(place.master, place.session_config)


class KeptOnServers:
    """Keeps a worker's TensorFlow server; the variables are on parameter servers.

    Args:
      servers: the cluster with all addresses, and this worker's task in it.
    """

    past_worlds = 0  # one server is in all of them

    def __init__(self, servers: Cluster) -> None:
        self.memory = Memory()
        self.servers = servers
        self.step: int | None = None
        self._errors = _InARow()
        self._place: Place | None = None

    def prepare(self, world: World, config: DeploymentConfig) -> None:
        """Makes the global step, and the fence that lets only this world's chief update."""
        servers = self.servers.ps
        fence = Fence(world.generation, f"{servers[0].device}/device:CPU:0", len(servers))
        note_fence(fence)
        with tf.device(config.variables_device()):
            tf.train.get_or_create_global_step()

    def place(self, config: DeploymentConfig, cluster: Cluster) -> Place:
        """Joins a world with the one server of this process."""
        if self._place is None:
            self._place = join(config, self.servers)
        return self._place._replace(cluster=cluster)

    def asks_after(self, error: Exception) -> bool:
        """Whether an error cut a step short: nobody knows then if it counts."""
        if not (is_lost(error) or is_refusal(error)):
            return False
        self._errors.note(error, self.step)
        return True

    def leave(self, place: Place, *, is_next_chief: bool) -> None:
        """Reads the global step; on the next chief frees memory of the servers."""
        if unreachable(self.servers.ps):
            return
        try:
            with tf.Session(place.master, config=place.session_config) as session:
                self.step = int(session.run(tf.train.get_global_step()))
                for hook in session_hooks():
                    if is_next_chief and hasattr(hook, "leave"):
                        hook.leave(session)
        except tf.errors.OpError:
            pass  # a server is lost, or a stopped chief still waits in an accumulator


Kept = KeptInMemory | KeptOnServers


def is_lost(error: Exception | None) -> bool:
    """Whether an error of a world says that another process is lost."""
    return error is not None and (isinstance(error, ConnectionError) or is_lost_connection(error))


def servers_of(environ: Mapping[str, str]) -> Cluster | None:
    """Returns an elastic run's parameter servers; a parameter server serves here until the end.

    Args:
      environ: environment variables, `os.environ`, of which it reads `TF_CONFIG`.

    Returns:
      The cluster with all addresses, and this worker's task in it; None for all-reduce.

    Raises:
      ValueError: as `cluster_from_tf_config`.
      SystemExit: as `join_cluster`.
    """
    text = environ.get("TF_CONFIG", "")
    if not text.strip() or not cluster_from_tf_config(text).ps_hosts:
        return None
    return join_cluster(environ).cluster


def kept_on(servers: Cluster | None) -> Kept:
    """Returns the object that keeps a worker's state: with parameter servers, or in memory."""
    return KeptInMemory() if servers is None else KeptOnServers(servers)
