"""`Fence`: which world of an elastic run may change the variables on the parameter servers.

A world is a period of the run with the same workers.  Parameter servers outlive worlds, and so may
a process that was stopped or cut off and wakes up when its world is over.  Accumulators and queues
have other names in each world, so such a process cannot disturb a later one.  Variables have the
same names in all worlds: so a chief begins an update only while no later chief has claimed them,
and notes the update while it is under way.
"""

from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

# The graph's one fence.  Not a string, see `hooks.py`.
_FENCE = ("model_deploy", "fence")


class Claim(NamedTuple):
    """The fence's numbers, as a chief reads them when it claims the variables.

    Attributes:
      generation: the latest world that has claimed the variables.
      ready: the last world whose chief has given the variables their values; 0 for none.
      updating: the world whose update is under way, or was cut short; 0 for none.
    """

    generation: int
    ready: int
    updating: int


class Fence:
    """Holds the three numbers of a `Claim` on a parameter server; adds ops to the default graph.

    Args:
      generation: the world of this process.
      device: device of the parameter server that holds the numbers.
      num_servers: number of parameter servers.

    Attributes:
      generation: as given.
      num_servers: as given.
      container: name of the TensorFlow container for the resources of this world alone.
    """

    def __init__(self, generation: int, device: str, num_servers: int = 1) -> None:
        self.generation = generation
        self.num_servers = num_servers
        self.container = f"world-{generation}"
        self._device = device
        with tf.name_scope("fence"), tf.device(device):
            self._claimed, self._ready, self._updating = (
                tf.Variable(
                    tf.zeros([], tf.int64),
                    trainable=False,
                    use_resource=True,
                    collections=[],
                    name=name,
                )
                for name in ("claimed", "ready", "updating")
            )
            values = [_value_or_0(v) for v in (self._claimed, self._ready, self._updating)]
            latest = tf.maximum(values[0], generation)
            claimed = [
                self._claimed.assign(latest, read_value=False),
                self._updating.assign(values[2], read_value=False),
            ]
            with tf.control_dependencies(claimed):
                self._claim = [tf.identity(latest), values[1], _value_or_0(self._updating)]
            self._is_ready = tf.equal(values[1], generation)
            self._unset = self._ready.assign(0, read_value=False)
            with tf.control_dependencies([self._updating.assign(0, read_value=False)]):
                self._set = self._ready.assign(generation, read_value=False)

    def claim(self, session: Any) -> Claim:
        """Claims the variables for this chief: no update of an earlier world begins from now on."""
        return Claim(*map(int, session.run(self._claim)))

    def is_ready(self, session: Any) -> bool:
        """Whether the chief of this world has given the variables their values."""
        return bool(session.run(self._is_ready))

    def mark(self, session: Any, is_ready: bool) -> None:
        """Notes, on the chief, whether the variables have their values."""
        session.run(self._set if is_ready else self._unset)

    def begin_update(self) -> Any:
        """Returns an op that notes an update, or fails if a later world owns the variables."""
        with tf.device(self._device):
            with tf.control_dependencies([self._checked()]):
                noted = self._updating.assign(self.generation, read_value=False)
            # A later chief may have claimed the variables, and seen no update, before the note.
            with tf.control_dependencies([noted]):
                return self._checked()

    def end_update(self) -> Any:
        """Returns an op that notes that the update is complete."""
        return self._updating.assign(0, read_value=False)

    def _checked(self) -> Any:
        """Returns an op that fails unless this world was the last to claim the variables."""
        claimed = self._claimed.read_value()
        error = f"the variables must be of world {self.generation} to be updated, got world"
        return tf.raw_ops.Assert(
            condition=tf.equal(claimed, self.generation), data=[error, claimed]
        )


def note_fence(fence: Fence) -> None:
    """Notes in the default graph the fence that its updates respect."""
    tf.add_to_collection(_FENCE, fence)


def repeats_steps(fence: Fence | None) -> bool:
    """Whether a step or update that TensorFlow has refused may be run again.

    A single server runs its part of a step wholly or not at all; with several, one may have run its
    part.  Without a fence, outside of elastic runs, a step is repeated in any case.
    """
    return fence is None or fence.num_servers == 1


def noted_fence() -> Fence | None:
    """Returns the fence of the default graph; None outside of elastic runs."""
    found = tf.get_collection(_FENCE)
    return found[-1] if found else None


def _value_or_0(variable: Any) -> Any:
    return tf.cond(
        variable.is_initialized(), variable.read_value, lambda: tf.zeros([], variable.dtype)
    )
