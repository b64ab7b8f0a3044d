"""The description of a cluster is checked when it is made."""

import pytest

from model_deploy.cluster import start_server, tasks_needed
from model_deploy.processes import Cluster, Task

pytestmark = pytest.mark.one_mode

WORKERS = ("a:2222", "b:2222")


def test_tasks():
    """Workers come first, the chief is worker 0, and each knows host, port and device."""
    cluster = Cluster(list(WORKERS), ["[::1]:2223"], "ps", 0)
    assert cluster.workers == (Task("worker", 0, "a:2222"), Task("worker", 1, "b:2222"))
    assert cluster.tasks == (*cluster.workers, cluster.own)
    assert [str(task) for task in cluster.tasks] == ["worker 0 (chief)", "worker 1", "ps 0"]
    assert (cluster.own.host, cluster.own.port) == ("::1", 2223)
    assert cluster.own.device == "/job:ps/task:0"
    assert cluster.as_dict() == {"worker": ["a:2222", "b:2222"], "ps": ["[::1]:2223"]}
    assert Cluster(WORKERS).as_dict() == {"worker": ["a:2222", "b:2222"]}


def test_part_of_a_larger_cluster():
    """Workers have the devices of their servers, and names by their places here."""
    cluster = Cluster(WORKERS, ["c:1"], task_id=1, server_tasks=[4, 2])
    assert cluster.own == Task("worker", 1, "b:2222", 2)
    assert (str(cluster.own), cluster.own.device) == ("worker 1", "/job:worker/task:2")
    assert cluster.ps[0].device == "/job:ps/task:0"


def test_evaluator():
    """It is a process of the run, but none of the tasks, and has no server."""
    cluster = Cluster(WORKERS, ["c:1"], "evaluator")
    assert (str(cluster.own), cluster.own.address) == ("evaluator 0", "")
    assert cluster.own not in cluster.tasks
    assert tasks_needed(cluster) == ()
    with pytest.raises(ValueError, match="must be worker or ps to start a server, got 'evaluator'"):
        start_server(cluster, None)


def test_workers_of_a_machine():
    """They have their local ranks by their order; a parameter server sees them, too."""
    hosts = ("a:1", "b:1", "a:2", "b:2")
    here = Cluster(hosts, ["b:3"], task_id=3).workers_here
    assert [task.task_id for task in here] == [1, 3]
    assert Cluster(hosts, ["b:3"], "ps").workers_here == here
    assert Cluster(hosts, [], "evaluator").workers_here == ()


@pytest.mark.parametrize(
    ("job_name", "task_id", "expected"),
    [("worker", 0, True), ("worker", 1, False), ("ps", 0, False), ("evaluator", 0, False)],
)
def test_chief(job_name, task_id, expected):
    """Only worker 0 is the chief."""
    assert Cluster(WORKERS, ["c:1"], job_name, task_id).is_chief is expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"worker_hosts": ["a:1", "b"]},
            r"worker_hosts\[1\] must be host:port, such as 10.0.0.5:2222, got 'b'",
        ),
        ({"server_tasks": [3]}, r"server_tasks must be one for each of 2 worker_hosts, got \[3\]"),
        pytest.param({"worker_hosts": [":1"]}, "must be host:port.*got ':1'", id="no-host"),
        pytest.param({"worker_hosts": ["grpc://a:1"]}, "got 'grpc://a:1'", id="scheme"),
        pytest.param({"worker_hosts": ["a b:1"]}, "got 'a b:1'", id="space"),
        pytest.param({"worker_hosts": ["::1:1"]}, "got '::1:1'", id="ipv6-without-brackets"),
        pytest.param({"worker_hosts": ["[a]:1"]}, r"got '\[a\]:1'", id="brackets-without-ipv6"),
        pytest.param({"worker_hosts": ["a]:1"]}, r"got 'a\]:1'", id="half-a-bracket"),
        pytest.param({"worker_hosts": ["a:x"]}, "port from 1 to 65535, got 'a:x'", id="port-text"),
        pytest.param({"worker_hosts": ["a:0"]}, "port from 1 to 65535, got 'a:0'", id="port-0"),
        pytest.param({"worker_hosts": ["a:65536"]}, "got 'a:65536'", id="port-too-large"),
        ({"worker_hosts": [5]}, r"worker_hosts\[0\] must be host:port.*got 5"),
        ({"worker_hosts": "a:1"}, "worker_hosts must be a sequence.*got 'a:1'"),
        (
            {"worker_hosts": [], "ps_hosts": ["a:1"]},
            "worker_hosts must name at least one worker, the chief, got none",
        ),
        (
            {"ps_hosts": ["B:2222"]},
            r"ps_hosts\[0\] must differ from worker_hosts\[1\], got 'B:2222' for both",
        ),
        (
            {"job_name": "chief"},
            "job_name must be one of ps, worker, evaluator, got 'chief'",
        ),
        (
            {"task_id": 2},
            "task_id must be at least 0 and less than the 2 tasks of worker_hosts, got 2",
        ),
        pytest.param({"job_name": "ps"}, "less than the 0 tasks of ps_hosts, got 0", id="no-ps"),
        pytest.param({"task_id": -1}, "task_id must be at least 0 .* got -1", id="negative"),
        pytest.param({"task_id": "1"}, "task_id must be an integer, got '1'", id="text-task"),
    ],
)
def test_cluster_rejects(fields, message):
    """A cluster that cannot be says which field breaks which rule, and its value."""
    with pytest.raises(ValueError, match=message):
        Cluster(**{"worker_hosts": WORKERS, **fields})
