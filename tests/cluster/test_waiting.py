"""Waiting for other tasks."""

import socket

import pytest

from model_deploy.cluster.waiting import tasks_needed, wait_for_tasks
from model_deploy.launch import ReservedPorts
from model_deploy.processes import Cluster, Task

pytestmark = pytest.mark.one_mode

WORKERS = ("a:1", "b:1", "c:1")


@pytest.mark.parametrize(
    ("ps_hosts", "job_name", "task_id", "expected"),
    [
        pytest.param(["d:1", "e:1"], "worker", 1, ["ps 0", "ps 1"], id="worker-with-ps"),
        pytest.param(["d:1", "e:1"], "ps", 1, [], id="ps"),
        pytest.param([], "worker", 1, ["worker 0 (chief)", "worker 2"], id="worker-without-ps"),
    ],
)
def test_tasks_needed(ps_hosts, job_name, task_id, expected):
    """Workers need all ps, and each other only where there is none; a ps needs nobody."""
    cluster = Cluster(WORKERS, ps_hosts, job_name, task_id)
    assert [str(task) for task in tasks_needed(cluster)] == expected


def test_waits_until_all_listen():
    """It names the missing tasks, and returns once the last of them listens."""
    lines = []
    with ReservedPorts(2) as ports, socket.create_server(("127.0.0.1", 0)) as early:
        addresses = [f"127.0.0.1:{early.getsockname()[1]}", *ports.addresses]
        tasks = [Task("ps", i, address) for i, address in enumerate(addresses)]
        servers = []

        def report(line):
            lines.append(line)
            host, _, port = addresses[len(servers) + 1].rpartition(":")
            servers.append(socket.create_server((host, int(port))))

        wait_for_tasks(tasks, 60, report=report, report_secs=0)
        for server in servers:
            server.close()
    assert lines == [
        f"waiting for ps 1 at {addresses[1]}, ps 2 at {addresses[2]}",
        f"waiting for ps 2 at {addresses[2]}",
    ]


def test_says_it_again_only_after_a_while():
    """Between two lines there are `report_secs`; at the end the error names the task."""
    lines = []
    with ReservedPorts(1) as ports:
        task = Task("worker", 0, ports.addresses[0])
        message = (
            rf"start_timeout must be .* got 0.3 s without worker 0 \(chief\) at {task.address}"
        )
        with pytest.raises(TimeoutError, match=message):
            wait_for_tasks([task], 0.3, report=lines.append, report_secs=60)
    assert lines == [f"waiting for worker 0 (chief) at {task.address}"]


def test_stops_when_told():
    """What makes the waiting pointless ends it."""
    answers = iter([False, True])
    with ReservedPorts(1) as ports:
        task = Task("worker", 0, ports.addresses[0])
        wait_for_tasks([task], 60, report=lambda _: None, stop=lambda: next(answers))
    assert list(answers) == []
