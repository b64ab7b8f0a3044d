"""Tests of `model_deploy.cluster.closing`."""

import subprocess
import sys
import threading

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.cluster import close_session, end_process, run_until_closed

pytestmark = pytest.mark.one_mode


class Closing:
    """Stands for a session of a server that is closed once `answer` is set."""

    sess_str = "grpc://a:1"

    def __init__(self):
        self.answer, self.closed = threading.Event(), threading.Event()

    def close(self):
        """Waits for the answer, as a session does for those of all processes."""
        assert self.answer.wait(60)
        self.closed.set()


def test_session_is_closed():
    """A session can run nothing once it was closed."""
    session = tf.Session()
    assert close_session(session)
    with pytest.raises(RuntimeError, match="closed"):
        session.run(tf.constant(1))


def test_nobody_else_closes_a_session_without_a_server():
    """Its end leaves no thread behind that might come back while Python ends."""

    class Local(Closing):
        sess_str = ""

        def close(self):
            self.closed.set()
            assert threading.current_thread() is threading.main_thread()

    session = Local()
    assert close_session(session)
    assert session.closed.is_set()


def test_no_answer():
    """An answer that does not come is waited for in the background, beyond the patience."""
    session = Closing()
    assert not close_session(session, patience_secs=0.1)
    assert not session.closed.is_set()
    session.answer.set()
    assert session.closed.wait(60)


def test_errors_of_a_lost_process():
    """That a process was lost is no error when a session is closed."""

    class Lost(Closing):
        def close(self):
            self.closed.set()
            raise tf.errors.UnavailableError(None, None, "connection reset")

    session = Lost()
    assert close_session(session)
    assert session.closed.is_set()


def test_call_goes_on_after_the_session():
    """A call that does not end with its session is left alone, and what it raises then is lost."""
    session, begun, caller = Closing(), threading.Event(), []

    def call():
        caller.append(threading.current_thread())
        begun.set()
        assert session.closed.wait(60)
        raise ValueError("late")

    def close():
        assert begun.wait(60)
        assert not close_session(session, patience_secs=0.1)

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(tf.errors.CancelledError, match="the session was closed while it ran"):
        run_until_closed(session, call)
    thread.join()
    assert caller[0].is_alive()
    session.answer.set()
    caller[0].join(60)
    assert not caller[0].is_alive()


@pytest.mark.parametrize("target", ["", "grpc://a:1"])
def test_call_that_ends(target):
    """What a call returns and raises comes through, with a server and without."""
    session = Closing()
    session.sess_str = target
    assert run_until_closed(session, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        run_until_closed(session, lambda: 1 / 0)


@pytest.mark.parametrize(
    "close_last",
    [
        pytest.param("close_session(last, patience_secs=0.1)", id="closed in vain"),
        pytest.param(
            "threading.Thread(target=close_session, args=[last], daemon=True).start()",
            id="being closed",
        ),
    ],
)
def test_late_answers_at_the_end_of_the_process(close_last, tmp_path):
    """A process that ends lets an answer come in, and one that comes while Python ends, which
    would abort it, stays out; also where another thread has just begun to close the session.
    """
    program = f"""
import os, sys, threading, time, types
import tensorflow.compat.v1 as tf
from model_deploy.cluster import close_session

pipe = {str(tmp_path / "pipe")!r}
os.mkfifo(pipe)

class Late:
    sess_str = "grpc://a:1"

    def __init__(self, answer):
        self.close = answer

class Last:
    def __del__(self, os=os, flags=os.O_WRONLY, sleep=time.sleep, pipe=pipe):
        os.close(os.open(pipe, flags))  # which is the answer
        sleep(1)
        os.write(1, b"ended")

def answer():
    time.sleep(1)
    print("answered", flush=True)

print(close_session(Late(answer), patience_secs=0.1), flush=True)
last = Late(tf.io.gfile.GFile(pipe).read)
{close_last}
sys.modules["last"] = types.ModuleType("last")
sys.modules["last"].last = Last()
sys.exit(7)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=300
    )
    assert ended.stdout.split() == ["False", "answered", "ended"], ended.stderr
    assert ended.returncode == 7


@pytest.mark.parametrize(
    ("secs", "last"),
    [
        pytest.param(0.5, "answered", id="an answer that comes"),
        pytest.param(600, "ending", id="an answer that does not come"),
    ],
)
def test_end_of_a_process(secs, last):
    """It ends soon, with its code and all that it has printed, whether an answer comes or not."""
    program = f"""
import time
from model_deploy.cluster import close_session, end_process, run_until_closed

class Late:
    sess_str = "grpc://a:1"

    def close(self):
        time.sleep({secs})
        print("answered", flush=True)

close_session(Late(), patience_secs=0.1)
print("ending")
end_process(7)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 7
    assert sorted(ended.stdout.split()) == sorted({"ending", last})


def test_end_of_a_process_with_all_answers():
    """Without a session that is being closed it is an exit as any other."""
    with pytest.raises(SystemExit) as ended:
        end_process(3)
    assert ended.value.code == 3
