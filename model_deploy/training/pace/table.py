"""`SharedTable`: a table at the chief in which each task keeps a row, by TensorFlow's runtime.

A thread hands in the row of its task, in a session of its own at the chief's server.  So the
transport is the same for each way to train, takes no time of a step, and a task that is lost, or
late, holds nobody up.  An op of the step would do so: a collective op waits for all workers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.cluster import Cluster, close_session

# After so long without an answer a message is given up.
_ANSWER_MSECS = 2000


class SharedTable:
    """A float64 [tasks, columns] in the memory of the chief's TensorFlow server.

    Nothing is sent before the first call; each raises `tf.errors.OpError` if the chief does not
    answer, or has not begun.

    Args:
      cluster: the cluster and this process's task.
      num_columns: numbers in a row.
    """

    def __init__(self, cluster: Cluster, num_columns: int) -> None:
        chief = cluster.workers[0]
        row = [str(task) for task in cluster.tasks].index(str(cluster.own))
        self._target = f"grpc://{chief.address}"
        # No third process takes part.
        self._config = tf.ConfigProto(
            device_filters=[chief.device], operation_timeout_in_ms=_ANSWER_MSECS
        )
        self._session: Any = None
        self._graph = tf.Graph()
        with self._graph.as_default(), tf.device(f"{chief.device}/device:CPU:0"):
            # In an elastic run a world with another number of tasks has another table.
            table = tf.Variable(
                np.zeros([len(cluster.tasks), num_columns]),
                trainable=False,
                use_resource=True,
                collections=[],
                name=f"pace_of_{len(cluster.tasks)}_tasks",
            )
            self._start = table.initializer
            self._values = table.read_value()
            self._given = tf.placeholder(tf.float64, [num_columns], "given")
            self._hand_in = tf.raw_ops.ResourceScatterUpdate(
                resource=table.handle, indices=row, updates=self._given
            )

    def start(self) -> None:
        """Empties the table; called by the chief."""
        self._run(self._start)

    def hand_in(self, numbers: Sequence[float]) -> None:
        """Replaces this task's row by as many numbers as there are columns."""
        self._run(self._hand_in, {self._given: numbers})

    def read(self) -> Any:
        """Returns all rows, float64 [tasks, columns], the workers' first; zeros where none came."""
        return self._run(self._values)

    def close(self) -> None:
        """Ends the session."""
        if self._session is not None:
            close_session(self._session)
            self._session = None

    def _run(self, fetches: Any, feeds: Any = None) -> Any:
        if self._session is None:
            self._session = tf.Session(self._target, self._graph, self._config)
        try:
            return self._session.run(fetches, feeds)
        except tf.errors.OpError:
            self.close()  # another session may find a chief that was started again
            raise
