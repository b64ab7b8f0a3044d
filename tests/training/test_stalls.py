"""Tests of the watch over steps that wait for other tasks."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import types

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.cluster import Cluster, LostSteps, Task
from model_deploy.cluster.cutting import cut_connections
from model_deploy.launch import ReservedPorts
from model_deploy.training.replicas import stalls
from model_deploy.training.replicas.replicas import Replicas
from model_deploy.training.replicas.shared_variables import check_are_shared
from model_deploy.training.replicas.stalls import StallWatch, unreachable
from tests.processes.harness import ROOT
from tests.training.halving import run_halving

pytestmark = pytest.mark.one_mode


class Session:
    """Stands for a session whose step ends when it is closed."""

    sess_str = "grpc://a:1"

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
        assert unreachable([task]) == [task]
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


# Its own step lasts, and the process is stopped in it.
_STOPPED_IN_A_STEP = """
import os, signal, socket, time
from model_deploy.cluster import Task
from model_deploy.training.replicas.stalls import StallWatch

with socket.create_server(("127.0.0.1", 0)) as server:
    task = Task("ps", 0, "127.0.0.1:%d" % server.getsockname()[1])
    say = lambda line: print(line, flush=True)
    with StallWatch(None, [task], 1.0, TimeoutError, report=say, lost_after=1.0) as watch:
        for running in [True, False] * 10 + [True]:
            watch.in_step(running)
        say("in a step")
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(60)
"""


@pytest.mark.slow
def test_time_in_which_the_process_stood_still_does_not_count():
    """A step is not lost because its own process was stopped for longer than one may last."""
    command = [sys.executable, "-c", _STOPPED_IN_A_STEP]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout.readline() == "in a step\n"
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            time.sleep(8.0)
            process.send_signal(signal.SIGCONT)
            line = process.stdout.readline()
        finally:
            process.kill()
    secs = re.match(r"no step for (\d+) s, and all tasks answer: cutting", line)
    assert int(secs[1]) < 8, line


def test_time_between_steps_is_not_watched():
    """Saving or evaluating may take as long as it takes, with or without the others."""
    session = Session()
    with _missing_task() as task, StallWatch(session, [task], 0.2, TimeoutError) as watch:
        watch.in_step(True)
        watch.in_step(False)
        assert not session.closed.wait(1.0)
    assert watch.error is None


def _waits_in_a_step(ended):
    ended.wait(60)


@pytest.mark.parametrize("is_missing", [False, True])
def test_stacks_of_all_threads_are_printed_once(is_missing):
    """A long step says who is missing, and where each thread of this process is; once."""
    lines, printed, ended = [], threading.Event(), threading.Event()

    def report(line):
        lines.append(line)
        if line.startswith("no step for"):
            printed.set()

    thread = threading.Thread(target=_waits_in_a_step, args=[ended], name="stepping")
    thread.start()
    try:
        options = {"report": report, "stacks_after": 0.2}
        with (
            _missing_task() as task,
            StallWatch(Session(), [task][:is_missing], 600, TimeoutError, **options) as watch,
        ):
            watch.in_step(True)
            assert printed.wait(60)
            assert not ended.wait(1.0)
        [text] = [line for line in lines if line.startswith("no step for")]
    finally:
        ended.set()
        thread.join()
    whom = f"waiting for worker 1 at {task.address}" if is_missing else "there is no other task"
    assert text.splitlines()[0] == f"no step for 0 s: {whom}"
    assert "in _waits_in_a_step" in text
    assert "in test_stacks_of_all_threads_are_printed_once" in text


def test_a_run_of_one_process_prints_stacks(tmp_path, capsys):
    """A step that takes longer than `stall_timeout` shows the line of the program that waits."""

    def wait_long(value):
        time.sleep(2.0)
        return value

    def slow():
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        tf.losses.add_loss(tf.square(weight) / 2 + tf.py_func(wait_long, [0.0], tf.float32))

    run_halving(tmp_path, 1, slow, stall_timeout=0.5)
    text = capsys.readouterr().err
    assert re.search(r"no step for \d s: there is no other task\n", text)
    assert "in wait_long" in text


@pytest.mark.parametrize(
    ("device", "is_shared"),
    [
        ("/job:ps/task:1", True),
        ("/job:worker/task:0", True),
        ("/job:worker/task:1", False),
        ("/job:worker", False),
        ("/device:CPU:0", False),
        ("", False),
    ],
)
def test_variables_that_nobody_sets(device, is_shared):
    """A worker whose own variables the chief cannot set says so, and does not wait for them. A ps
    task that is to train is refused, by its job.
    """
    cluster = Cluster(("a:1",), ("b:1",), "ps", 0)
    with pytest.raises(ValueError, match="job_name must be worker to train, got 'ps'"):
        Replicas(cluster, None, start_timeout=1.0, stall_timeout=1.0)
    expected = contextlib.nullcontext()
    if not is_shared:
        message = r"LOCAL_VARIABLES, got 'total' on '.*' of worker 1$"
        expected = pytest.raises(ValueError, match=message)
    with tf.Graph().as_default(), tf.device(device):
        variable = tf.get_variable("total", [])
        with expected:
            check_are_shared([variable], Task("worker", 1, "a:1"))


@pytest.mark.parametrize(
    ("is_there", "message"),
    [
        (True, "Cleanup 5"),
        (True, "The same RunGraph (Worker) request was received twice."),
        (False, "Cleanup 5"),
    ],
)
def test_step_that_fails_names_what_is_lost(is_there, message, capsys):
    """A step that fails while all tasks answer is told with its error; else with the lost task."""
    model = types.SimpleNamespace(is_synchronous=False, clone_updates=())
    with ReservedPorts(1) as ports, tf.Graph().as_default():
        cluster = Cluster(("127.0.0.1:1",), (ports.addresses[0],), "worker", 0)
        replicas = Replicas(cluster, model, start_timeout=1.0, stall_timeout=0.1)
        error = tf.errors.AbortedError(None, None, message)
        if is_there:
            with socket.create_server(("127.0.0.1", ports.numbers[0])):
                replicas.recover(error, 7)
            line = f"the step after 7 failed, and all tasks answer: {message}; going on anew"
        else:
            with pytest.raises(TimeoutError, match="stall_timeout must be long enough"):
                replicas.recover(error, 7)
            lost = f"ps 0 at {ports.addresses[0]}"
            line = f"lost the connection to {lost} after step 7; going on once it is back"
    assert capsys.readouterr().err.splitlines()[0] == line


def test_step_of_all_reduce_that_fails_while_all_answer():
    """The error is told, and no task is named as lost that is there."""
    model = types.SimpleNamespace(is_synchronous=True, clone_updates=())
    with ReservedPorts(1) as ports, tf.Graph().as_default():
        cluster = Cluster(("127.0.0.1:1", ports.addresses[0]))
        replicas = Replicas(cluster, model, start_timeout=1.0, stall_timeout=0.1)
        error = tf.errors.UnavailableError(None, None, "Socket closed")
        message = "^the step after 7 failed, and all tasks answer: Socket closed; with all-reduce"
        there = socket.create_server(("127.0.0.1", ports.numbers[0]))
        with there, pytest.raises(ConnectionError, match=message):
            replicas.recover(error, 7)
        lost = f"^lost the connection to worker 1 at {ports.addresses[0]} after step 7; with all-r"
        with pytest.raises(ConnectionError, match=lost):
            replicas.recover(error, 7)


def test_a_step_that_is_lost_ends_with_its_connection():
    """One that takes far longer than any of ten, while all tasks answer, has its connection cut,
    once; the task can be reached again.
    """
    lines, options = [], {"lost_after": 0.3}
    with socket.create_server(("127.0.0.1", 0)) as server:
        task = Task("ps", 0, f"127.0.0.1:{server.getsockname()[1]}")
        with (
            socket.create_connection((task.host, task.port)) as connection,
            StallWatch(
                Session(), [task], 600, TimeoutError, report=lines.append, **options
            ) as watch,
        ):
            for _ in range(10):
                watch.in_step(True)
                watch.in_step(False)
            watch.in_step(True)
            connection.settimeout(60)
            assert connection.recv(1) == b""
            time.sleep(7)
        assert unreachable([task]) == []
    [line] = lines
    assert re.fullmatch(
        r"no step for \d s, and all tasks answer: cutting 1 connections to them, as "
        "TensorFlow may have lost it",
        line,
    )


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("steps", "after", "lost_at"),
    [
        ([1.0] * 10, 60.0, 60.0),
        ([1.0] * 9 + [4.0], 60.0, 80.0),
        ([50.0] + [1.0] * 9, 60.0, 60.0),
        ([1.0] * 9, 60.0, 1800.0),
        ([], 60.0, 1800.0),
        ([], 3600.0, 3600.0),
        ([100.0], 60.0, 2000.0),
        ([1.0] * 8 + [100.0], 60.0, 2000.0),
    ],
)
def test_when_a_step_counts_as_lost(steps, after, lost_at):
    """After 20 times the longest of ten, but the first; one of these has half an hour at least."""
    lines = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        task = Task("ps", 0, f"127.0.0.1:{server.getsockname()[1]}")
        lost = LostSteps([task], after, lines.append)
        for secs in steps:
            lost.note(secs)
        lost.end(5.0, 5.0 + lost_at - 1)
        assert not lines
        lost.end(5.0, 5.0 + lost_at)
    assert [line.partition(",")[0] for line in lines] == [f"no step for {lost_at:.0f} s"]


def test_connections_to_others_are_not_cut():
    """Only those to the servers of the tasks are, not those of them to this process."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        first = one.getsockname()[1]
        mine, kept = (socket.create_connection(each.getsockname()) for each in (one, other))
        with mine, kept:
            assert cut_connections([Task("ps", 0, "nobody.invalid:1")]) == 0
            assert cut_connections([Task("ps", 0, f"localhost:{first}")]) == 1
            mine.settimeout(60)
            assert mine.recv(1) == b""
            kept.send(b"x")
            with other.accept()[0] as accepted:
                assert accepted.recv(1) == b"x"
