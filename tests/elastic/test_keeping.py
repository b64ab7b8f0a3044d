"""What a worker of an elastic run finds of parameter servers, and keeps of a world."""

import json

import pytest

from model_deploy import DeploymentConfig
from model_deploy.cluster import WORLD_FILE, Cluster, World
from model_deploy.elastic import servers_of
from model_deploy.elastic.keeping import KeptInMemory, KeptOnServers, kept_on
from model_deploy.elastic.member import deployment_in

pytestmark = pytest.mark.one_mode

SERVERS = Cluster(("a:1", "b:1", "c:1"), ("d:1", "e:1"), task_id=2)


def _tf_config(**jobs):
    return json.dumps({"cluster": jobs, "task": {"type": "worker", "index": 1}})


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({}, None),
        ({"TF_CONFIG": ""}, None),
        ({"TF_CONFIG": _tf_config(worker=["a:1", "b:1"])}, None),
        (
            {"TF_CONFIG": _tf_config(chief=["a:1"], worker=["b:1", "c:1"], ps=["d:1", "e:1"])},
            SERVERS,
        ),
    ],
)
def test_servers(environ, found):
    """They are those of `TF_CONFIG`; without any it is all-reduce."""
    assert servers_of(environ) == found


def test_a_server_serves(monkeypatch):
    """A parameter server does not wait for worker 0, which may be lost before it is seen."""
    seen = []
    monkeypatch.setattr(
        "model_deploy.training.replicas.joining.serve",
        lambda cluster, timeout, waits_for_chief: seen.append(waits_for_chief),
    )
    cluster = {"chief": ["a:1"], "ps": ["d:1"]}
    text = json.dumps({"cluster": cluster, "task": {"type": "ps", "index": 0}})
    for more in ({}, {WORLD_FILE: "world.json"}):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        with pytest.raises(SystemExit):
            servers_of({"TF_CONFIG": text, **more})
    assert seen == [True, False]


def test_way():
    """With servers it is their cluster that stays, else the values of the variables."""
    assert isinstance(kept_on(None), KeptInMemory)
    kept = kept_on(SERVERS)
    assert isinstance(kept, KeptOnServers)
    assert (kept.servers, kept.step) == (SERVERS, None)


def test_deployment_with_servers():
    """A worker has its rank among those of the world, and the task of its own server."""
    world = World(4, 3, {1: "b:1", 5: "c:1"})
    config = deployment_in(world, 5, DeploymentConfig(num_clones=2), SERVERS)
    assert (config.all_reduce, config.num_ps_tasks, config.num_replicas) == (False, 2, 2)
    assert (config.replica_id, config.worker_device) == (1, "/job:worker/task:2")
    assert (config.first_part, config.accumulate_steps, config.global_parts) == (2, 1, 3)
    cluster = world.cluster(5, SERVERS)
    assert (cluster.own.task_id, cluster.own.device) == (1, "/job:worker/task:2")
    assert (cluster.is_chief, cluster.ps_hosts) == (False, SERVERS.ps_hosts)
    alone = World(5, 3, {5: "c:1"})
    assert alone.cluster(5, SERVERS).is_chief
    only = deployment_in(alone, 5, DeploymentConfig(), SERVERS)
    assert only.worker_device == "/job:worker/task:2"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"all_reduce": True}, "all_reduce must be False for an elastic run, .* got True"),
        ({"copy_clones": True}, "copy_clones must be False with global_parts, got True"),
        ({"sync_batch_norm": True}, "sync_batch_norm must be False with global_parts, got True"),
    ],
)
def test_what_cannot_be(settings, message):
    """What the servers have no use for is refused by name."""
    with pytest.raises(ValueError, match=message):
        deployment_in(World(1, 2, {0: "c:1"}), 0, DeploymentConfig(**settings), SERVERS)
