"""`Server`: whether a parameter server is there, and how much memory it holds."""

import math
import os
import time

import tensorflow.compat.v1 as tf

from model_deploy.cluster import Task
from model_deploy.training.pace.own_session import OwnSession
from model_deploy.training.pace.reporting import Report

# Seconds between two questions.
_ASK_SECS = 1.0
# Linux: the second number is the resident set, in pages.
_MEMORY_FILE = "/proc/self/statm"


class Server:
    """A parameter server, as the chief sees it, which asks it by an op that reads a file there.

    So the server has no thread that could still wait for the chief when both end.

    Args:
      chief: the task of this process.
      server: the parameter server.
    """

    def __init__(self, chief: Task, server: Task) -> None:
        graph = tf.Graph()
        with graph.as_default(), tf.device(f"{server.device}/device:CPU:0"):
            # Fed, as TensorFlow would read a constant file once, in the process of the chief.
            self._name = tf.placeholder(tf.string, [], "name")
            self._content = tf.io.read_file(self._name)
        self._session = OwnSession(chief, graph, [server])
        self._report = Report()
        self._asked_at = -math.inf

    def report(self) -> Report:
        """Returns its newest report, at most a second old if it answers."""
        now = time.monotonic()
        if now - self._asked_at < _ASK_SECS:
            return self._report
        self._asked_at = now
        try:
            content = self._session.run(self._content, {self._name: _MEMORY_FILE})
            memory = int(content.split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except tf.errors.NotFoundError:  # it answers, and is no Linux
            memory = 0
        except tf.errors.OpError:
            return self._report
        self._report = Report(self._report.number + 1, memory)
        return self._report

    def close(self) -> None:
        """Ends its session."""
        self._session.close()
