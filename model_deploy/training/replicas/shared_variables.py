"""Variables on parameter servers, which exist before and after this process."""

import time
from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.cluster import Task, run_unless_refused
from model_deploy.parameter_servers import Fence, unsaved_variable, value_of

# Seconds to wait for an update by a lost chief, which may still be arriving at the servers.
_UPDATE_SECS = 2.0
_POLL_SECS = 0.1


class StartHook(tf.train.SessionRunHook):
    """Runs an op at the start of each session."""

    def __init__(self, op: Any) -> None:
        self._op = op

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the op."""
        del coord
        run_unless_refused(lambda: session.run(self._op))


class SharedVariables:
    """A flag on ps 0 that says whether the chief has given all variables their values.

    Without it a worker could begin while the chief restores variables that have old values.  Adds
    ops to the default graph, and reads `GLOBAL_VARIABLES`.

    Args:
      device: device of the flag, on a parameter server.

    Attributes:
      goes_back: whether the chief may have to restore a checkpoint at any time, so that one must
        exist from the start.
    """

    goes_back = False

    def __init__(self, device: str) -> None:
        with tf.name_scope("shared_variables"):
            flag = unsaved_variable(device, "are_set", False)
            with tf.device(device):
                is_set = value_of(flag, False)
                self._set = flag.assign(True, read_value=False)
                self._unset = flag.assign(False, read_value=False)
            uninitialized = tf.report_uninitialized_variables(tf.global_variables())
            flag_name = tf.boolean_mask(["the chief's values"], tf.reshape(~is_set, [1]))
            self._missing = tf.concat([uninitialized, flag_name], axis=0)

    def are_set(self, session: Any) -> bool:
        """Whether all variables have the values of the run."""
        return not run_unless_refused(lambda: session.run(self._missing)).size

    def mark(self, session: Any, are_set: bool) -> None:
        """Notes whether all variables have the values of the run."""
        run_unless_refused(lambda: session.run(self._set if are_set else self._unset))


class VariablesOfWorld(SharedVariables):
    """The shared variables of one world of an elastic run.

    The chief claims the variables for its world, and keeps their values unless an update was cut
    short: then it restores the newest checkpoint.

    Args:
      fence: the fence of the default graph.
      is_chief: whether this process is the chief of the world.
    """

    goes_back = True

    def __init__(self, fence: Fence, is_chief: bool) -> None:
        self._fence = fence
        self._is_chief = is_chief
        self._missing = tf.report_uninitialized_variables(tf.global_variables())
        self._missing.mark_used()  # silences a warning in workers, which do not use it

    def are_set(self, session: Any) -> bool:
        """Whether all variables have the values of the run; on the chief, claims them first.

        Raises:
          tf.errors.CancelledError: in the chief of a world that is over.
        """
        if not self._is_chief:
            return run_unless_refused(lambda: self._fence.is_ready(session))
        end = time.monotonic() + _UPDATE_SECS
        claim = self._claimed(session)
        while claim.updating and time.monotonic() < end:
            time.sleep(_POLL_SECS)
            claim = self._claimed(session)
        if not claim.ready or run_unless_refused(lambda: session.run(self._missing)).size:
            return False
        if claim.updating:
            print("an update was cut short: going back to the newest checkpoint", flush=True)
        return not claim.updating

    def mark(self, session: Any, are_set: bool) -> None:
        """Notes whether all variables have the values of the run."""
        run_unless_refused(lambda: self._fence.mark(session, are_set))

    def _claimed(self, session: Any) -> Any:
        claim = run_unless_refused(lambda: self._fence.claim(session))
        if claim.generation > self._fence.generation:
            error = f"world {self._fence.generation} is over: world {claim.generation} has begun"
            raise tf.errors.CancelledError(None, None, error)
        return claim


def check_are_shared(variables: Iterable[Any], own: Task) -> None:
    """Checks, in a worker that is not the chief, that no variable is on the worker itself.

    Args:
      variables: the variables of the worker's graph.
      own: the worker.

    Raises:
      ValueError: naming a variable on the worker: it would wait forever for the chief to set it.
    """
    own_device = tf.DeviceSpec.from_string(own.device)
    for variable in variables:
        device = tf.DeviceSpec.from_string(variable.device)
        is_own = device.job == "worker" and device.task in (None, own_device.task)
        if device.job is None or is_own:
            raise ValueError(
                "variables must be where the chief can set them, such as within "
                "`tf.device(config.variables_device())`, or in LOCAL_VARIABLES, got "
                f"{variable.op.name!r} on {variable.device or 'no device'!r} of worker "
                f"{own.task_id}"
            )
