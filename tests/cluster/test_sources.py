"""A cluster is found in flags, `TF_CONFIG` or SLURM's variables."""

import json
import os

import pytest

from model_deploy.cluster import ClusterOptions
from model_deploy.cluster.sources import (
    cluster_from_flags,
    cluster_from_slurm,
    cluster_from_tf_config,
    resolve,
)
from model_deploy.processes import Cluster

pytestmark = pytest.mark.one_mode

FLAGS = {"worker_hosts": "a:1, b:1", "ps_hosts": "c:1"}


def _tf_config(kind="worker", index=0, **jobs):
    return json.dumps({"cluster": jobs, "task": {"type": kind, "index": index}})


def _slurm(rank, nodes, tasks_per_node, num_tasks, **others):
    return {
        "SLURM_PROCID": str(rank),
        "SLURM_STEP_NUM_TASKS": str(num_tasks),
        "SLURM_STEP_NODELIST": nodes,
        "SLURM_STEP_TASKS_PER_NODE": tasks_per_node,
        **others,
    }


@pytest.mark.parametrize(
    ("fields", "task", "expected"),
    [
        pytest.param({}, 0, Cluster(("a:1", "b:1"), ("c:1",)), id="chief"),
        pytest.param({}, 1, Cluster(("a:1", "b:1"), ("c:1",), "worker", 1), id="task"),
        pytest.param({"task_id": 1}, 0, Cluster(("a:1", "b:1"), ("c:1",), "worker", 1), id="id"),
        pytest.param({"task_id": 1}, 1, Cluster(("a:1", "b:1"), ("c:1",), "worker", 1), id="both"),
        pytest.param({"job_name": "ps"}, 0, Cluster(("a:1", "b:1"), ("c:1",), "ps", 0), id="ps"),
    ],
)
def test_flags(fields, task, expected):
    """`--task_id` or `--task` and `--job_name` say which of the hosts this process is."""
    assert cluster_from_flags(ClusterOptions(**FLAGS, **fields), task) == expected


def test_flags_reject_two_tasks():
    """Two different indices are a mistake."""
    with pytest.raises(ValueError, match="task must be the same as task_id=0, got 1"):
        cluster_from_flags(ClusterOptions(**FLAGS, task_id=0), task=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            _tf_config("chief", 0, chief=["a:1"], worker=["b:1"], ps=["c:1"]),
            Cluster(("a:1", "b:1"), ("c:1",), "worker", 0),
        ),
        (
            _tf_config("worker", 1, chief=["a:1"], worker=["b:1", "d:1"]),
            Cluster(("a:1", "b:1", "d:1"), (), "worker", 2),
        ),
        (_tf_config("worker", 1, worker=["b:1", "d:1"]), Cluster(("b:1", "d:1"), (), "worker", 1)),
        (
            _tf_config("master", 0, master=["a:1"], ps=["c:1"]),
            Cluster(("a:1",), ("c:1",), "worker", 0),
        ),
        (
            json.dumps(  # as the operator of TFJobs has it
                {
                    "cluster": {"master": ["a:1"], "ps": ["c:1"], "worker": ["b:1"]},
                    "task": {"type": "worker", "index": 0},
                    "environment": "cloud",
                }
            ),
            Cluster(("a:1", "b:1"), ("c:1",), "worker", 1),
        ),
        (
            _tf_config("evaluator", chief=["a:1"], worker=["b:1"], ps=["c:1"]),
            Cluster(("a:1", "b:1"), ("c:1",), "evaluator", 0),
        ),
        (
            _tf_config("evaluator", 0, worker=["a:1"], evaluator=["e:1"]),
            Cluster(("a:1",), (), "evaluator", 0),
        ),
        (
            _tf_config("worker", 0, chief=["a:1"], worker=["b:1"], evaluator=["e:1"]),
            Cluster(("a:1", "b:1"), (), "worker", 1),
        ),
        (
            _tf_config("ps", "1", chief=["a:1"], ps=["c:1", "d:1"]),
            Cluster(("a:1",), ("c:1", "d:1"), "ps", 1),
        ),
    ],
)
def test_tf_config(text, expected):
    """The chief is worker 0 and the workers follow."""
    assert cluster_from_tf_config(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", r"TF_CONFIG must be JSON \(.*\), got '{'", id="not-json"),
        pytest.param("[]", r"TF_CONFIG must be a JSON object, got '\[\]'", id="not-an-object"),
        ('{"cluster": 3}', "TF_CONFIG cluster must be a JSON object, got 3"),
        ('{"cluster": {"worker": ["a:1"]}}', "TF_CONFIG task must be a JSON object, got None"),
        (
            _tf_config(worker={"1": "a:1"}),
            r"cluster.worker must be a list of host:port, got {'1': 'a:1'}",
        ),
        (
            _tf_config(chief=["a:1"], worker=["b"]),
            r"TF_CONFIG cluster.worker\[0\] must be host:port.*got 'b'",
        ),
        pytest.param(
            _tf_config(chief=["a:1", "b:1"]), "cluster.chief must be one address, got a:1, b:1"
        ),
        pytest.param(
            _tf_config("ps", ps=["c:1"]), "must have a chief or a worker, got the types ps"
        ),
        pytest.param(
            _tf_config(chief=["a:1"], master=["b:1"]),
            "TF_CONFIG cluster.chief and cluster.master must be one address, got a:1, b:1",
            id="chief-and-master",
        ),
        (
            _tf_config(worker=["a:1"], evaluator=["e:1", "f:1"]),
            "TF_CONFIG cluster.evaluator must be one address, got e:1, f:1",
        ),
        (
            _tf_config(worker=["a:1"], evaluator=["e"]),
            r"TF_CONFIG cluster.evaluator\[0\] must be host:port.*got 'e'",
        ),
        (
            _tf_config("evaluator", 1, worker=["a:1"]),
            "task.index must be at least 0 and less than the 1 tasks of cluster.evaluator, got 1",
        ),
        (
            _tf_config("trainer", worker=["a:1"]),
            "type must be one of the types in its cluster, worker, evaluator, got 'trainer'",
        ),
        (
            _tf_config(worker=["a:1"], wroker=["b:1"]),
            "cluster must have no types but chief, master, worker, ps, evaluator, got 'wroker'",
        ),
        ('{"sparseCluster": {"worker": {"1": "a:1"}}}', "got a sparseCluster: leave out enable"),
        pytest.param(_tf_config("chief", worker=["a:1"]), "got 'chief'", id="chief-not-there"),
        (
            _tf_config("worker", 1, chief=["a:1"], worker=["b:1"]),
            "TF_CONFIG task.index must be at least 0 and less than the 1 tasks of cluster.worker, "
            "got 1",
        ),
        pytest.param(_tf_config(index="x", worker=["a:1"]), "index must be an integer, got 'x'"),
        (_tf_config(worker=["a:1", "a:1"]), r"worker_hosts\[1\] must differ"),
    ],
)
def test_tf_config_rejects(text, message):
    """A `TF_CONFIG` that cannot be says what in it breaks which rule."""
    with pytest.raises(ValueError, match=message):
        cluster_from_tf_config(text)


@pytest.mark.parametrize(
    ("environ", "num_ps", "expected"),
    [
        (_slurm(0, "n[1-2]", "2(x2)", 4), 0, Cluster(("n1:8888", "n1:8889", "n2:8888", "n2:8889"))),
        (
            _slurm(0, "n[1-2]", "2(x2)", 4),
            1,
            Cluster(("n1:8889", "n2:8888", "n2:8889"), ("n1:8888",), "ps", 0),
        ),
        (
            _slurm(2, "n[2,10],a", "1(x3)", 3, SLURMD_NODENAME="a"),
            1,
            Cluster(("n10:8888", "a:8888"), ("n2:8888",), "worker", 1),
        ),
        pytest.param(
            _slurm(2, "n[1-2]", "2,1", 3),
            0,
            Cluster(("n1:8888", "n1:8889", "n2:8888"), (), "worker", 2),
        ),
    ],
)
def test_slurm(environ, num_ps, expected):
    """Tasks are numbered in the order of SLURM's list of machines; the first are ps."""
    before = dict(os.environ)
    assert cluster_from_slurm(environ, num_ps) == expected
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("environ", "num_ps", "message"),
    [
        pytest.param({}, 0, "SLURM must have started this process by srun, got 'SLURM_STEP_NUM_"),
        pytest.param({"SLURM_STEP_NUM_TASKS": "2"}, 0, "by srun, got SLURM_PROCID not found"),
        (
            _slurm(0, "n1", "2", 2),
            2,
            "num_ps_tasks must be at least 0 and leave a worker of the 2 SLURM tasks, got 2",
        ),
        pytest.param(_slurm(0, "n1", "2", 2), -1, "must be at least 0 .* got -1", id="negative"),
        (
            _slurm(1, "n[1-2]", "2(x2)", 4, SLURMD_NODENAME="n2"),
            0,
            r"machine by machine \(.*=block\), got task 1 on 'n2' in place of 'n1'",
        ),
        pytest.param(_slurm(0, "n[", "1(x2)", 2), 0, "Invalid hostlist format", id="hostlist"),
    ],
)
def test_slurm_rejects(environ, num_ps, message):
    """What SLURM did not set, or set otherwise than understood, is an error."""
    with pytest.raises(ValueError, match=message):
        cluster_from_slurm(environ, num_ps)


TF_CONFIG = {"TF_CONFIG": _tf_config(worker=["t:1"])}
SLURM = _slurm(0, "s[1-2]", "1(x2)", 2)


@pytest.mark.parametrize(
    ("fields", "environ", "chief", "note"),
    [
        pytest.param({}, {}, None, "no cluster: one process", id="nothing"),
        pytest.param({}, {"TF_CONFIG": ""}, None, "no cluster: one process", id="empty"),
        pytest.param({}, {"TF_CONFIG": "{}"}, None, "no cluster: one process", id="no-cluster"),
        ({}, {"SLURM_STEP_NUM_TASKS": "1"}, None, "no cluster: one process"),
        pytest.param(FLAGS, {}, "a:1", "cluster from --worker_hosts", id="flags"),
        (
            FLAGS,
            {**TF_CONFIG, **SLURM},
            "a:1",
            "cluster from --worker_hosts; ignored: TF_CONFIG, SLURM",
        ),
        (FLAGS, {"TF_CONFIG": "{"}, "a:1", "cluster from --worker_hosts; ignored: TF_CONFIG"),
        ({}, {**TF_CONFIG, **SLURM}, "t:1", "cluster from TF_CONFIG; ignored: SLURM"),
        pytest.param({}, SLURM, "s1:8888", "cluster from SLURM", id="slurm"),
        (
            {"cluster_source": "slurm", "slurm_port": 7000},
            {**TF_CONFIG, **SLURM},
            "s1:7000",
            "cluster from SLURM; ignored: TF_CONFIG",
        ),
        (
            {"cluster_source": "none"},
            TF_CONFIG,
            None,
            "no cluster: one process; ignored: TF_CONFIG",
        ),
    ],
)
def test_resolve(fields, environ, chief, note):
    """Flags win over TF_CONFIG, it wins over SLURM, and one line says so."""
    cluster, line = resolve(ClusterOptions(**fields), environ)
    assert line == note
    assert (cluster.worker_hosts[0] if cluster else None) == chief


def test_resolve_master():
    """With the address of a server there is no cluster to start."""
    resolved = resolve(ClusterOptions(), TF_CONFIG, master="grpc://a:1")
    assert resolved.cluster is None
    assert resolved.note == "the server at --master=grpc://a:1; ignored: TF_CONFIG"


@pytest.mark.parametrize(
    ("fields", "environ", "message"),
    [
        (
            {"cluster_source": "tf_config"},
            {},
            "cluster_source must be one that describes .*, got 'tf_config' without TF_CONFIG",
        ),
        pytest.param(
            {"job_name": "ps"}, TF_CONFIG, "worker_hosts must be given with job_name='ps', got ''"
        ),
        pytest.param({"task_id": 0}, {}, "worker_hosts must be given with task_id=0, got ''"),
        pytest.param({"ps_hosts": "c:1"}, {}, "worker_hosts must name at least one worker"),
        pytest.param({}, {"TF_CONFIG": "{"}, "TF_CONFIG must be JSON", id="broken"),
        (
            {},
            {"TF_CONFIG": '{"task": {"type": "evaluator"}}'},
            "TF_CONFIG cluster must be a JSON object, got None",
        ),
    ],
)
def test_resolve_rejects(fields, environ, message):
    """A description that is half there is not passed over."""
    with pytest.raises(ValueError, match=message):
        resolve(ClusterOptions(**fields), environ)
