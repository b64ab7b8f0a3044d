"""A process of a cluster that waits for another one: what ends the wait, and how soon."""

import signal

import pytest

from model_deploy.launch import ReservedPorts
from tests.processes.faults import END_SECS, PROGRAM, training_flags
from tests.processes.harness import Processes, Tasks

pytestmark = pytest.mark.one_mode


def _tasks(processes, ports, folder, *flags):
    """Two synchronous workers and a parameter server, not yet started."""
    program = [*PROGRAM, *training_flags(folder, "synchronous"), *flags]
    return Tasks(processes, ports.addresses, 1, program)


def _kill(tasks, name):
    """Kills one that has made steps, or that serves those that do."""
    tasks["worker 0"].wait_for_line("^step 1/")
    tasks[name].signal(signal.SIGKILL)
    tasks[name].wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("started", "killed", "line"),
    [
        pytest.param(["ps 0", "worker 0", "worker 1"], "worker 1", "waiting for", id="in-a-step"),
        pytest.param(["ps 0", "worker 0", "worker 1"], "ps 0", "waiting for", id="lost-server"),
        pytest.param(["worker 0"], None, "waiting for ps 0", id="server-at-the-start"),
        pytest.param(["ps 0", "worker 1"], None, "to set the variables", id="chief-at-the-start"),
    ],
)
def test_a_signal_ends_a_wait(started, killed, line, tmp_path):
    """SIGTERM ends a worker that waits for a task which does not come, with 143, soon."""
    with ReservedPorts(3) as ports, Processes(tmp_path) as processes:
        tasks = _tasks(processes, ports, tmp_path)
        for name in started:
            tasks.start(name)
        if killed is not None:
            _kill(tasks, killed)
        waiting = tasks[next(name for name in started if name.startswith("worker"))]
        waiting.wait_for_line(line)
        waiting.signal(signal.SIGTERM)
        assert waiting.wait(END_SECS) == 128 + signal.SIGTERM, waiting.log
        assert "Traceback" not in waiting.log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("killed", "rule"),
    [
        pytest.param("worker 1", "long enough for a step", id="worker"),
        pytest.param("ps 0", "long enough for tasks to come back", id="ps"),
    ],
)
def test_who_never_comes_back_is_an_error(killed, rule, tmp_path):
    """After `stall_timeout` without a task the others end, with an error that names it."""
    with ReservedPorts(3) as ports, Processes(tmp_path) as processes:
        tasks = _tasks(processes, ports, tmp_path, "--stall_timeout=2")
        for name in ("ps 0", "worker 0", "worker 1"):
            tasks.start(name)
        _kill(tasks, killed)
        assert tasks["worker 0"].wait() == 1
        address = tasks.address_of[killed]
        message = f"stall_timeout must be {rule}, got 2 s without {killed} at {address}"
        assert message in tasks["worker 0"].log
