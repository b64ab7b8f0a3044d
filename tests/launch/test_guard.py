"""A guarded command leaves no process behind."""

import os
import signal
import subprocess
import sys

import pytest

from model_deploy.launch import guard
from tests.launch.programs import program
from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode

# Starts one process in its own group and one that leaves it, and says when it is ready.
FAMILY = """
for leaves in (False, True):
    subprocess.Popen(["sleep", "1000"], start_new_session=leaves)
print("ready", flush=True)
"""


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("true", 0),
        ("exit 3", 3),
        ("kill -KILL $$", 128 + signal.SIGKILL),
        ("kill -PIPE $$", 128 + signal.SIGPIPE),
        ("kill -HUP $$", 128 + signal.SIGHUP),
    ],
)
def test_exit_status(script, status, tmp_path):
    """The guard ends as the command did, which gets signals as if it had no guard."""
    with Processes(tmp_path) as processes:
        assert processes.start("task", ["sh", "-c", script]).wait() == status


def test_command_that_cannot_be_started(tmp_path):
    """A command that does not exist is one line and status 127."""
    with Processes(tmp_path) as processes:
        task = processes.start("task", ["/no/such/command"])
        assert task.wait() == 127
        assert task.log.endswith("cannot start '/no/such/command': No such file or directory\n")


def test_parent_that_is_gone():
    """A guard whose parent has ended before it was there starts nothing."""
    command = [sys.executable, "-I", "-S", guard.__file__, "1", "echo", "started"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.parametrize(
    ("share", "cores"),
    [
        ("0/1", "0,4,1,5,2,6,3,7"),
        ("0/2", "0,4,1,5"),
        ("1/2", "2,6,3,7"),
        ("2/3", "2,6"),
        ("3/4", "3,7"),
        ("7/8", "7"),
        ("9/10", "4"),
    ],
)
def test_shares_of_cores(share, cores, tmp_path, monkeypatch, capsys):
    """A share is of whole cores, and of one socket, as far as it can be."""
    # Two sockets of two cores of two threads; Linux numbers the second threads of all cores last.
    for processor in range(8):
        folder = tmp_path / f"cpu{processor}/topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{processor // 2 % 2}\n")
        (folder / "core_id").write_text(f"{processor % 2}\n")
    kept = []
    monkeypatch.setattr(guard, "_PROCESSORS", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, own: kept.extend(own))
    guard.keep_to_share(*map(int, share.split("/")))
    assert ",".join(map(str, kept)) == cores
    assert capsys.readouterr().out == f"cores {cores}\n"


def test_nothing_is_left_after_the_command(tmp_path):
    """What the command started and left behind is killed."""
    with Processes(tmp_path) as processes:
        assert processes.start("task", program(FAMILY)).wait() == 0
        assert processes.living() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on(number, tmp_path):
    """The command decides what it does on SIGTERM and SIGINT; its group gets them, too."""
    source = f"""
signal.signal({number:d}, lambda *_: sys.exit(5))
child = subprocess.Popen(["sleep", "1000"])
print("ready", flush=True)
print("child", -child.wait(), flush=True)
signal.pause()
"""
    with Processes(tmp_path) as processes:
        task = processes.start("task", program(source))
        task.wait_for_line("ready")
        task.signal_guard(number)
        assert task.wait() == 5
        assert processes.living() == []


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_end_of_the_guard_is_the_end_of_all(number, tmp_path):
    """With its guard the command ends, even if it is stopped; on SIGHUP all that it started."""
    with Processes(tmp_path) as processes:
        task = processes.start("task", program(FAMILY + "os.kill(os.getpid(), signal.SIGSTOP)"))
        task.wait_for_line("ready")
        task.signal_guard(number)
        assert task.wait() in (128 + signal.SIGKILL, -signal.SIGKILL)
        if number == signal.SIGHUP:
            assert processes.living() == []
            return
        processes.wait_until(lambda: task.pid not in processes.living())
        for pid in processes.living():  # nobody is left who could do it
            os.kill(pid, signal.SIGKILL)
    processes.assert_no_orphan()
