"""`Passage`: whether a run of the session has something to do that an earlier one has left."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

# What the local variable `rotation/pending` holds; an odd state would be doubled to a begun one.
_NOTHING, _PENDING, _BEGUN = 0, 1, 2


class Passage:
    """Lets the ops of a rest run in each run of the session that finds one, and in no other.

    The untaken output of a `Switch` makes all ops dead that need it, up to a `Merge`, as in
    `updating.Condition`.  The state is a local variable.  A run that finds a rest notes that it has
    begun it; a run that finds one begun, and never ended, fails.

    Args:
      device: of the state.
      batches: ops that get the batches of a step.  The rest begins when they are there, so that the
        end of the inputs leaves it as it is.

    Attributes:
      ready: a bool scalar; fed with True the rest is done without batches.
    """

    def __init__(self, device: str, batches: Sequence[Any]) -> None:
        self._device = device
        self._pending = local_variable("pending", tf.constant(_NOTHING), device)
        with tf.device(device), tf.control_dependencies(None), tf.name_scope("rotation/passage"):
            with tf.control_dependencies(batches):
                have_come = tf.identity(tf.constant(True))
            self.ready = tf.placeholder_with_default(have_come, [], "ready")
            # An input: what merely waits for a placeholder waits for the batches, fed or not, and
            # TensorFlow's rewriting takes an identity between the two away.
            state = self._pending.read_value() * tf.cast(self.ready, tf.int32)
            ended = tf.debugging.Assert(
                state < _BEGUN,
                [
                    "the rest of a step must be done wholly, by the next step or by "
                    "DeployedModel.rest.flush, got a run that has ended within it"
                ],
            )
            with tf.control_dependencies([ended]):
                begun = self._pending.assign(_BEGUN * state, read_value=False)
            with tf.control_dependencies([begun]):
                self.is_open = tf.equal(state, _PENDING)
        self._switches: dict[str, tuple[Any, Any]] = {}
        self._gates: dict[tuple[str, frozenset[str]], Any] = {}

    def leave(self, done: Sequence[Any], pending: bool) -> Any:
        """Returns an op that notes, after others, whether there is a rest."""
        state = _PENDING if pending else _NOTHING
        with tf.device(self._device), tf.control_dependencies(list(done)):
            return self._pending.assign(state, read_value=False)

    def opened(self, tensor: Any, device: str) -> Any:
        """Returns a tensor of any shape, dead in runs without a rest."""
        with tf.device(device):
            return tf.raw_ops.Switch(data=tensor, pred=self.is_open).output_true

    def yes(self, device: str) -> Any:
        """Returns an op that is dead in runs without a rest."""
        return self._switch(device)[1].op

    def gate(self, ops: Sequence[Any], device: str) -> Any:
        """Returns an op that runs after `ops`, which are of the rest, or at once without one."""
        key = (device, frozenset(op.name for op in ops))
        if key not in self._gates:
            no, yes = self._switch(device)
            with tf.device(device), tf.name_scope("rotation/gate"):
                with tf.control_dependencies(list(ops)):
                    after = tf.identity(yes)
                self._gates[key] = tf.raw_ops.Merge(inputs=[no, after]).output.op
        return self._gates[key]

    def _switch(self, device: str) -> tuple[Any, Any]:
        if device not in self._switches:
            with tf.device(device), tf.name_scope("rotation/passage"):
                switch = tf.raw_ops.Switch(data=self.is_open, pred=self.is_open)
                no, yes = tf.identity(switch.output_false), tf.identity(switch.output_true)
            self._switches[device] = (no, yes)
        return self._switches[device]


def local_variable(name: str, value: Any, device: str) -> Any:
    """Makes a resource variable that no checkpoint holds, of the shape that a tensor may have.

    Args:
      name: below `rotation/`.
      value: a tensor of any shape, of which dimensions may be unknown.
      device: of the variable.
    """
    shape = value.shape

    def zeros() -> Any:
        return tf.zeros([size or 0 for size in shape.as_list()], value.dtype.base_dtype)

    with tf.init_scope(), tf.device(None), tf.device(device), tf.name_scope(None):
        return tf.Variable(
            zeros,
            trainable=False,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
            name=f"rotation/{name}",
            dtype=value.dtype.base_dtype,
            use_resource=True,
            validate_shape=shape.is_fully_defined(),
            shape=shape,
        )
