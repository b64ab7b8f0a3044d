"""Variables on parameter servers, which are there before and after this process."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.cluster import run_unless_refused


class SharedVariables:
    """A flag on ps 0 that says whether the chief has given all variables their values.

    Without it a worker could begin between the restoring of one variable and the next, when
    each has some value.  Adds ops to the default graph, and reads `GLOBAL_VARIABLES`.

    Args:
      device: where the flag is, a device of a parameter server.
    """

    def __init__(self, device: str) -> None:
        with tf.name_scope("shared_variables"):
            with tf.device(device):
                flag = tf.Variable(
                    False, trainable=False, use_resource=True, collections=[], name="are_set"
                )
                is_set = tf.cond(flag.is_initialized(), flag.read_value, lambda: False)
                self._set = flag.assign(True, read_value=False)
                self._unset = flag.assign(False, read_value=False)
            uninitialized = tf.report_uninitialized_variables(tf.global_variables())
            flag_name = tf.boolean_mask(["the chief's values"], tf.reshape(~is_set, [1]))
            self._missing = tf.concat([uninitialized, flag_name], axis=0)

    def are_set(self, session: Any) -> bool:
        """Whether all variables have the values of the run."""
        return not run_unless_refused(lambda: session.run(self._missing)).size

    def mark(self, session: Any, are_set: bool) -> None:
        """Says whether they have."""
        run_unless_refused(lambda: session.run(self._set if are_set else self._unset))
