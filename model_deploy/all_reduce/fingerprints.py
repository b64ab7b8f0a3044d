"""`CopiesFingerprints`: 64 bits of each copy of each variable, which all replicas compare."""

import dataclasses
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.all_reduce.start import sendable_variables
from model_deploy.all_reduce.variable_copies import VariableCopies
from model_deploy.collectives import collectives_of
from model_deploy.config import DeploymentConfig


class CopiesFingerprints:
    """Fingerprints of all copies, which every process gets; adds ops to the default graph.

    Beside `copies_difference`, which says by how much copies differ, and sends all values for it:
    of each variable 8 bytes are sent, and whose copy differs is known.

    Reads the collection `GLOBAL_VARIABLES`.

    Args:
      config: the deployment, with all-reduce.

    Attributes:
      names: names of the variables.
      places: devices of the clones of all replicas, in the order of ranks.
    """

    def __init__(self, config: DeploymentConfig) -> None:
        variables = sendable_variables()
        copies = VariableCopies(config)
        collectives = collectives_of(config, "fingerprints")
        self.names = [variable.op.name for variable in variables]
        replicas = [
            dataclasses.replace(config, replica_id=number) for number in range(config.num_replicas)
        ]
        self.places = [
            replica.clone_device(i) for replica in replicas for i in range(config.num_clones)
        ]
        with tf.name_scope("fingerprints"):
            self._flag = tf.placeholder_with_default(tf.zeros([], tf.int64), [])

            def row(i: int) -> Any:
                own = [copies.of_clone(variable, i) for variable in variables]
                values = [
                    (variable if other is None else other).read_value()
                    for variable, other in zip(variables, own, strict=True)
                ]
                return tf.stack([self._flag, *map(_fingerprint, values)])[tf.newaxis]

            gathered = collectives.gather(collectives.on_devices(row), "all copies")
            with tf.control_dependencies([collectives.done()]):
                self._gathered = tf.identity(gathered[0])

    def gather(self, session: Any, found: bool) -> tuple[list[str], Any]:
        """Exchanges the fingerprints; all replicas must do so after the same step.

        Args:
          session: the session.
          found: whether this process has found its own values to be wrong.

        Returns:
          The places of other processes that have found theirs to be wrong, and the fingerprints,
          int64 [places, variables].
        """
        rows = session.run(self._gathered, {self._flag: int(found)})
        flagged = [
            place for place, is_wrong in zip(self.places, rows[:, 0], strict=True) if is_wrong
        ]
        return flagged, rows[:, 1:]


def _fingerprint(tensor: Any) -> Any:
    """Returns 64 bits of the bits of a tensor of any shape, by FarmHash64: an int64 scalar."""
    bits = tf.fingerprint(tf.reshape(tensor, [1, -1]))
    return tf.bitcast(bits, tf.int64)[0]
