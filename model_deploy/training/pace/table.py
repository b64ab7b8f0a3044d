"""`SharedTable`: a table at the chief in which each task keeps a row, by TensorFlow's runtime.

A thread hands in the row of its task, in a session of its own at the chief's server.  So the
transport is the same for each way to train, takes no time of a step, and a task that is lost, or
late, holds nobody up.  An op of the step would do so: a collective op waits for all workers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.cluster import Cluster
from model_deploy.training.pace.own_session import OwnSession


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
        graph = tf.Graph()
        self._session = OwnSession(chief, graph)
        with graph.as_default(), tf.device(f"{chief.device}/device:CPU:0"):
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
        self._session.run(self._start)

    def hand_in(self, numbers: Sequence[float]) -> None:
        """Replaces this task's row by as many numbers as there are columns."""
        self._session.run(self._hand_in, {self._given: numbers})

    def read(self) -> Any:
        """Returns all rows, float64 [tasks, columns], the workers' first; zeros where none came."""
        return self._session.run(self._values)

    def close(self) -> None:
        """Ends the session."""
        self._session.close()
