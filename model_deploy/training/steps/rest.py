"""`RestOfSteps`: when a session does what a rotated step has left to the next one."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.rotation import Rest


class RestOfSteps:
    """What the last step of a session has left.

    Where a hook takes part in a step, in any replica, all replicas do its rest after the step.

    Args:
      rest: the rest of the model's steps.
      session: the session.
    """

    def __init__(self, rest: Rest, session: Any) -> None:
        self._rest, self._session = rest, session
        self._is_left = False

    def ask(self) -> None:
        """Asks all replicas, before a step, to do its rest after it."""
        self._rest.ask(self._session)

    def after_step(self, values: Any) -> Any:
        """Does the rest where it was asked for; returns the report of the step.

        Args:
          values: the report, and behind it `Rest.asked`: a float64 vector.
        """
        self._is_left = True
        if values[-1] > 0:
            self.settle()
        return values[:-1]

    def settle(self) -> None:
        """Does what is left, if anything is; other replicas must do so after the same step."""
        if self._is_left:
            self._rest.flush(self._session)
            self._is_left = False

    def may_end(self) -> bool:
        """Whether this process may end the run after the step, of which others do not know yet.

        If not, the others hear of it in the next step, after which it may.
        """
        if self._is_left and self._rest.is_alone:
            self.settle()
        if self._is_left:
            self.ask()
        return not self._is_left

    def try_to_settle(self) -> bool:
        """Does what is left behind an error; returns whether the variables are those of a step."""
        if self._is_left and self._rest.is_alone:
            try:
                self.settle()
            except tf.errors.OpError:  # the error before is the one that counts
                return False
        return not self._is_left
