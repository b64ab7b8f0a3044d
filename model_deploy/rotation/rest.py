"""`Rest`: what a run of the session has left of its step, and how it is done without another."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.collectives import Collectives
from model_deploy.config import DeploymentConfig
from model_deploy.rotation.passage import Passage, local_variable


class Rest:
    """What a step leaves to the next run of the session: sums that are still out, and updates.

    The next run of the train op does it first.  `flush` does it alone, so that the variables are
    those after the last step; all replicas must do so after the same step.  Between a step and its
    flush nothing but the train op, and what is fetched with it, may be run.

    Args:
      config: the deployment.
      passage: whether there is a rest.
      done: ops, of the rest, that come last.

    Attributes:
      is_alone: whether no other replica takes part in a step.
      asked: whether a replica has asked for a flush before the step, a float64 scalar that is more
        than 0 then; fetch it together with the train op.
    """

    def __init__(self, config: DeploymentConfig, passage: Passage, done: Any) -> None:
        self._ready = passage.ready
        self.is_alone = config.num_replicas == 1
        device = config.clone_device(0)
        with tf.name_scope("rotation"):
            self._flush = tf.group(passage.leave([done], pending=False), name="flush")
            wish = local_variable("wish", tf.constant(0.0), device)
            with tf.device(device):
                self._wish = wish.assign(1.0, read_value=False)
                own = wish.read_value()
                with tf.control_dependencies([own]):
                    self._forget = wish.assign(0.0, read_value=False)
                members = Collectives([device], config.replica_id, config.num_replicas, "rest")
                [largest] = members.max([tf.reshape(own, [1])], "a flush is asked for")
                with tf.control_dependencies([self._forget]):
                    self.asked = tf.cast(tf.reshape(largest, []), tf.float64)

    def ask(self, session: Any) -> None:
        """Asks all replicas, before a step, for a flush after it; they read `asked`."""
        session.run(self._wish)

    def flush(self, session: Any) -> None:
        """Does what is left of the last step; nothing if nothing is."""
        session.run(self._flush, {self._ready: True})
