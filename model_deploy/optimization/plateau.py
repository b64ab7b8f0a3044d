"""`Plateau`: a learning rate that falls where evaluations get no better."""

from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.cluster import run_unless_refused
from model_deploy.parameter_servers import unsaved_variable, value_of

# Not a string: collections with other names do not go into checkpoints.
_PLATEAUS = ("model_deploy", "plateau")


class Plateau:
    """The number of falls of a learning rate: a function of the evaluations of a run.

    It is an int32 variable in no collection, which the training loop sets when a session begins and
    after each evaluation.  So no checkpoint has it, and it cannot differ from the evaluations.

    Args:
      device: device of the variable.
      patience: evaluations in a row without improvement after which the rate falls; the count then
        begins anew.
      min_delta: an improvement is more than this.

    Attributes:
      min_delta: as given.
      falls: how often the rate has fallen, as far as this process knows.
    """

    def __init__(self, device: str, patience: int, min_delta: float) -> None:
        self.min_delta = min_delta
        self.falls = 0
        self._patience = patience
        self._variable = unsaved_variable(device, "plateau", 0)
        with tf.device(device):
            self._given = tf.placeholder(tf.int32, [], "plateau_given")
            self._set = self._variable.assign(self._given, read_value=False)

    def rate(self, highest: float, factor: float, least: float) -> Any:
        """Returns `max(least, highest * factor ** falls)`, a float32 scalar."""
        falls = tf.cast(value_of(self._variable, 0), tf.float32)
        return tf.maximum(least, highest * tf.pow(factor, falls))

    def follow(self, improvements: Iterable[bool]) -> None:
        """Counts falls anew.

        Args:
          improvements: of each evaluation of the run, in their order, whether it was better than
            all before it by more than `min_delta`.
        """
        self.falls = waited = 0
        for improved in improvements:
            waited = 0 if improved else waited + 1
            if waited == self._patience:
                self.falls, waited = self.falls + 1, 0

    def put_into(self, session: Any) -> None:
        """Gives the variable the present number of falls."""
        run_unless_refused(lambda: session.run(self._set, {self._given: self.falls}))


def note_plateau(plateau: Plateau) -> None:
    """Notes in the default graph that its learning rate follows the evaluations."""
    tf.add_to_collection(_PLATEAUS, plateau)


def noted_plateau() -> Plateau | None:
    """Returns the plateau of the default graph; None without.

    Raises:
      ValueError: if there are several.
    """
    found = tf.get_collection(_PLATEAUS)
    if len(found) > 1:
        raise ValueError(
            f"at most one learning rate of a graph must be a plateau, got {len(found)}"
        )
    return found[0] if found else None
