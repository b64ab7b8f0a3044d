"""Tests of the watch over steps that wait for other tasks."""

import contextlib
import threading

import pytest

from model_deploy.cluster import Cluster, Task
from model_deploy.launch import ReservedPorts
from model_deploy.training import stalls
from model_deploy.training.replicas import Replicas
from model_deploy.training.stalls import StallWatch, unreachable


class Session:
    """Stands for a session whose step ends when it is closed."""

    def __init__(self):
        self.closed = threading.Event()

    def close(self):
        self.closed.set()


@contextlib.contextmanager
def _missing_task():
    """A task where nobody listens."""
    with ReservedPorts(1) as ports:
        yield Task("worker", 1, ports.addresses[0])


def test_step_without_a_task_is_ended():
    """A step that waits for a missing task for too long ends with an error that names it."""
    session = Session()
    with _missing_task() as task:
        with StallWatch(session, [task], 0.2, TimeoutError) as watch:
            watch.in_step(True)
            assert session.closed.wait(60)
        assert str(watch.error) == f"worker 1 at {task.address}"


def test_step_is_given_up_when_the_run_is_to_stop(monkeypatch):
    """Asked to stop, it ends a step that waits for a missing task, which is no error then."""
    monkeypatch.setattr(stalls, "_STOP_SECS", 0.1)
    session, lines = Session(), []
    with _missing_task() as task:
        with StallWatch(
            session, [task], 600, TimeoutError, report=lines.append, stop=lambda: True
        ) as watch:
            watch.in_step(True)
            assert session.closed.wait(60)
        assert lines == [f"the step is given up, without worker 1 at {task.address}"]
    assert watch.error is None


def test_time_between_steps_is_not_watched():
    """Saving or evaluating may take as long as it takes, with or without the others."""
    session = Session()
    with _missing_task() as task, StallWatch(session, [task], 0.2, TimeoutError) as watch:
        watch.in_step(True)
        watch.in_step(False)
        assert not session.closed.wait(1.0)
    assert watch.error is None


def test_unreachable_tasks():
    """A task is unreachable if nobody listens at its address."""
    with _missing_task() as task:
        assert unreachable([task]) == [task]


def test_parameter_server_cannot_train():
    """A ps task that is to train is refused, by its job."""
    cluster = Cluster(("a:1",), ("b:1",), "ps", 0)
    with pytest.raises(ValueError, match="job_name must be worker to train, got 'ps'"):
        Replicas(cluster, None, start_timeout=1.0, stall_timeout=1.0)
