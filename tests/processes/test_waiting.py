"""A process of a cluster that waits for another one: what ends the wait, and how soon."""

import signal

import pytest

from model_deploy.launch import ReservedPorts
from tests.processes.faults import END_SECS, PROGRAM, cluster_flags, training_flags
from tests.processes.harness import Processes


class _Tasks:
    """Tasks of a cluster of two synchronous workers and a parameter server, by name."""

    def __init__(self, processes, folder, ports, *flags):
        self._processes, self._folder, self._ports = processes, folder, ports
        self._flags = flags
        self._running = {}

    def __getitem__(self, name):
        return self._running[name]

    def start(self, *names):
        """Starts them."""
        hosts = self._ports.addresses
        for name in names:
            flags = cluster_flags(name, hosts[:2], hosts[2:])
            arguments = [*training_flags(self._folder, "synchronous"), *flags, *self._flags]
            log = name.replace(" ", "-")
            self._running[name] = self._processes.start(log, [*PROGRAM, *arguments])

    def kill(self, name):
        """Kills one that has made steps, or that serves those that do."""
        self["worker 0"].wait_for_line("^step 1/")
        self[name].signal(signal.SIGKILL)
        self[name].wait()


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
        tasks = _Tasks(processes, tmp_path, ports, "--hold_at=0")
        tasks.start(*started)
        if killed is not None:
            tasks.kill(killed)
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
        tasks = _Tasks(processes, tmp_path, ports, "--stall_timeout=2")
        tasks.start("ps 0", "worker 0", "worker 1")
        tasks.kill(killed)
        address = dict(zip(("worker 1", "ps 0"), ports.addresses[1:], strict=True))[killed]
        assert tasks["worker 0"].wait() == 1
        message = f"stall_timeout must be {rule}, got 2 s without {killed} at {address}"
        assert message in tasks["worker 0"].log
