"""`Fence`: which world of an elastic run may change the variables on the parameter servers.

The servers outlive worlds, and so may a process that was stopped, or cut off, and wakes up in one
that is over.  What replicas of a world add up and wait for has a name of its own in each world.
The variables have the same in all of them: so an update of the chief begins only while no later
chief has claimed them, and is noted while it is under way.
"""

from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

# The graph's one fence.  Not a string, see `hooks.py`.
_FENCE = ("model_deploy", "fence")


class Claim(NamedTuple):
    """What the parameter servers said to a chief that has claimed the variables.

    Attributes:
      generation: the latest world that has claimed them.
      ready: the last world whose chief has seen to it that they have values; 0 for none.
      updating: the world whose update is under way, or was cut short; 0 for none.
    """

    generation: int
    ready: int
    updating: int


class Fence:
    """Three numbers on a parameter server.  Adds ops to the default graph.

    Args:
      generation: the world of this process.
      device: of the parameter server.
      num_servers: how many parameter servers there are.

    Attributes:
      generation: as given.
      num_servers: as given.
      container: TensorFlow's container of what belongs to this world alone.
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
        """On the chief: from now on no update of an earlier world begins."""
        return Claim(*map(int, session.run(self._claim)))

    def is_ready(self, session: Any) -> bool:
        """Whether the chief of this world has seen to it that variables have their values."""
        return bool(session.run(self._is_ready))

    def mark(self, session: Any, is_ready: bool) -> None:
        """On the chief: says whether it has."""
        session.run(self._set if is_ready else self._unset)

    def begin_update(self) -> Any:
        """An op that notes an update, and fails if a later world has claimed the variables."""
        with tf.device(self._device):
            with tf.control_dependencies([self._checked()]):
                noted = self._updating.assign(self.generation, read_value=False)
            # A chief that has claimed them in between may have seen no update.
            with tf.control_dependencies([noted]):
                return self._checked()

    def end_update(self) -> Any:
        """An op that notes that the update is made."""
        return self._updating.assign(0, read_value=False)

    def _checked(self) -> Any:
        claimed = self._claimed.read_value()
        error = f"the variables must be of world {self.generation} to be updated, got world"
        return tf.raw_ops.Assert(
            condition=tf.equal(claimed, self.generation), data=[error, claimed]
        )


def note_fence(fence: Fence) -> None:
    """Notes in the default graph what its updates ask."""
    tf.add_to_collection(_FENCE, fence)


def repeats_steps(fence: Fence | None) -> bool:
    """Whether a step or update that TensorFlow has refused may be made again.

    One server runs its part of it wholly or not at all; of several one may have run its own.
    Outside of elastic runs, which have no fence, it is made again all the same.
    """
    return fence is None or fence.num_servers == 1


def noted_fence() -> Fence | None:
    """The fence of the default graph; None outside of elastic runs."""
    found = tf.get_collection(_FENCE)
    return found[-1] if found else None


def _value_or_0(variable: Any) -> Any:
    return tf.cond(
        variable.is_initialized(), variable.read_value, lambda: tf.zeros([], variable.dtype)
    )
