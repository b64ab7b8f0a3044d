"""`OwnSession`: a session at the chief's TensorFlow server beside that of the steps."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.cluster import Task, close_session

# After so long without an answer a message is given up.
_ANSWER_MSECS = 2000


class OwnSession:
    """A session that is opened when it is first used, and anew after an error.

    Args:
      chief: the task at whose server it is.
      graph: its graph.
      others: the other tasks whose devices it uses.
    """

    def __init__(self, chief: Task, graph: Any, others: Sequence[Task] = ()) -> None:
        self._target = f"grpc://{chief.address}"
        self._graph = graph
        # No other process takes part.
        self._config = tf.ConfigProto(
            device_filters=[task.device for task in (chief, *others)],
            operation_timeout_in_ms=_ANSWER_MSECS,
        )
        self._session: Any = None

    def run(self, fetches: Any, feeds: Any = None) -> Any:
        """Runs ops, as `tf.Session.run` does.

        Raises:
          tf.errors.OpError: if a process does not answer.
        """
        if self._session is None:
            self._session = tf.Session(self._target, self._graph, self._config)
        try:
            return self._session.run(fetches, feeds)
        except tf.errors.OpError:
            self.close()  # another session may find a process that was started again
            raise

    def close(self) -> None:
        """Ends the session."""
        if self._session is not None:
            close_session(self._session)
            self._session = None
