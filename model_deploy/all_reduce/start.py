"""Start of a session by all-reduce: all replicas get the variables of one of them."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.all_reduce.variable_copies import VariableCopies
from model_deploy.cluster import run_until_closed
from model_deploy.collectives import Collectives, can_be_sent
from model_deploy.config import DeploymentConfig
from model_deploy.hooks import add_session_hook


class StartHook(tf.train.SessionRunHook):
    """Sends one replica's values to all clones of all replicas when a session starts.

    Args:
      start_op: the op that hands them out.
      clone_devices: devices that the session must have.

    Attributes:
      start_op: as given.  All replicas must run it, after they initialized or restored their
        variables; it waits for all of them.
    """

    def __init__(self, start_op: Any, clone_devices: Sequence[str] = ()) -> None:
        self.start_op = start_op
        self._clone_devices = clone_devices

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs `start_op`.

        Raises:
          ValueError: naming a clone's device that the session does not have.  Soft placement
            would put two clones on one device, where they wait for each other forever.
        """
        del coord
        names = [device.name for device in session.list_devices()]
        for device in self._clone_devices:
            if not any(name.endswith(device.rsplit("/", 1)[-1]) for name in names):
                raise ValueError(
                    f"all_reduce needs a device for each clone, got no {device} among "
                    f"{', '.join(names)}"
                )
        run_until_closed(session, lambda: session.run(self.start_op))


def add_start_hook(config: DeploymentConfig, copies: VariableCopies) -> StartHook:
    """Adds a `StartHook` for all variables that the graph has now.

    Reads the collection `GLOBAL_VARIABLES`.
    """
    device = config.clone_device(0)
    variables = sendable_variables()
    received = []
    if config.num_replicas > 1:
        group = Collectives([device], config.replica_id, config.num_replicas, "start")
        values = [variable.read_value() for variable in variables]
        if config.global_parts is None:
            [values] = group.in_packs([values], variables, group.broadcast)
        else:
            values = _values_of_the_furthest(config, group, variables, values)
        received = [
            assign(variable, value) for variable, value in zip(variables, values, strict=True)
        ]
    with tf.control_dependencies(received):
        copied = [
            assign(other, variable.read_value())
            for variable in variables
            for other in _other_copies(copies, variable, config.num_clones)
        ]
    devices = [config.clone_device(i) for i in range(config.num_clones)]
    hook = StartHook(tf.group(*received, *copied, name="start_values"), devices)
    add_session_hook(hook)
    return hook


def _values_of_the_furthest(
    config: DeploymentConfig, group: Collectives, variables: Sequence[Any], values: Sequence[Any]
) -> list[Any]:
    """Returns the values of the replica with the largest global step; on a tie of the first one.

    Args:
      config: the deployment.
      group: collective ops between the first clones of all replicas.
      variables: the variables.
      values: this replica's values of the variables, of their shapes.
    """
    step = tf.cast(tf.train.get_or_create_global_step().read_value(), tf.int64)
    place = step * config.num_replicas + (config.num_replicas - 1 - config.replica_id)
    [furthest] = group.max([tf.reshape(place, [1])], "the most steps")
    gives = tf.equal(furthest[0], place)
    given = [tf.where_v2(gives, value, tf.zeros_like(value)) for value in values]
    [found] = group.in_packs([given], variables, group.sum)
    return list(found)


def assign(variable: Any, value: Any) -> Any:
    """Returns an op that assigns a value of the variable's shape, on the variable's device."""
    with tf.device(variable.device):
        return variable.assign(value, read_value=False)


def sendable_variables() -> list[Any]:
    """Returns the `GLOBAL_VARIABLES`, of any shapes, whose dtype collective ops can send."""
    return [variable for variable in tf.global_variables() if can_be_sent(variable.dtype)]


def _other_copies(copies: VariableCopies, variable: Any, num_clones: int) -> list[Any]:
    """Returns the copies of a variable of the clones after the first."""
    found = [copies.of_clone(variable, i) for i in range(1, num_clones)]
    return [other for other in found if other is not None]
