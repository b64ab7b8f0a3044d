"""Variables on parameter servers, which are there before and after this process."""

from collections.abc import Iterable
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


def check_are_shared(variables: Iterable[Any], task_id: int) -> None:
    """Checks, in a worker that is not the chief, that the chief can set its variables.

    Args:
      variables: those of its graph.
      task_id: the number of the worker.

    Raises:
      ValueError: naming the first variable that is on the worker itself: it would wait for ever.
    """
    for variable in variables:
        device = tf.DeviceSpec.from_string(variable.device)
        is_own = device.job == "worker" and device.task in (None, task_id)
        if device.job is None or is_own:
            raise ValueError(
                "variables must be where the chief can set them, such as within "
                "`tf.device(config.variables_device())`, or in LOCAL_VARIABLES, got "
                f"{variable.op.name!r} on {variable.device or 'no device'!r} of worker {task_id}"
            )
