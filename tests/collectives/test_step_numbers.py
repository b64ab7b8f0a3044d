"""Steps with collective ops have numbers that all processes agree on, see `internals`."""

import os
import re
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.cluster import Cluster, session_config, start_server
from model_deploy.launch import ReservedPorts
from tests import clusters

pytestmark = pytest.mark.one_mode

# TensorFlow numbers steps at random, so that equal numbers that follow one another are no accident.
_SUMS = """
import concurrent.futures
import os
import tensorflow.compat.v1 as tf
from model_deploy import DeploymentConfig, all_reduce
from model_deploy.cluster import Cluster, session_config, start_server
from model_deploy.collectives import collectives_of
from model_deploy.launch import ReservedPorts

with ReservedPorts(2) as ports:
    hosts = ports.addresses

def make_steps(task):
    deployment = DeploymentConfig(
        all_reduce=True, num_replicas=2, replica_id=task, clone_on_cpu=True
    )
    cluster = Cluster(hosts, task_id=task)
    config = all_reduce.session_config(deployment, session_config(cluster))
    server = start_server(cluster, config)
    with tf.Graph().as_default() as graph:
        [gradients] = collectives_of(deployment, "gradients").sum([tf.ones([4])], "all")
        [metrics] = collectives_of(deployment, "metrics").max([tf.ones([2]) * task], "some")
    with tf.Session(server.target, graph, config) as session:
        for fetches in (gradients, metrics, [gradients, metrics], gradients):
            print(session.run(fetches), flush=True)

with concurrent.futures.ThreadPoolExecutor() as pool:
    list(pool.map(make_steps, range(2)))
os._exit(0)  # servers cannot be ended
"""


def test_all_steps_are_of_one_sequence():
    """Four steps with three sets of ops have four numbers in a row, the same in both processes."""
    notes = {"TF_CPP_VMODULE": "ring_reducer=5", "TF_CPP_MIN_LOG_LEVEL": "0"}
    program = [sys.executable, "-c", _SUMS]
    run = subprocess.run(
        program, env={**os.environ, **notes}, capture_output=True, text=True, check=True
    )
    numbers = sorted(set(map(int, re.findall(r"RingReduce .* step_id=(\d+) ", run.stderr))))
    assert len(numbers) == 4
    assert numbers[-1] - numbers[0] == 3


@pytest.mark.parametrize(
    ("task_id", "leader", "calls"),
    [
        (0, clusters.LEADER, ["number", "start"]),
        (1, clusters.LEADER, ["start"]),
        (0, "", ["start"]),
    ],
)
def test_the_leader_begins_the_sequence(monkeypatch, task_id, leader, calls):
    """The leader of collective ops, alone, has numbered steps before its server answers anyone."""
    found = []
    number, start = internals.number_collective_steps, tf.distribute.Server.start

    def numbering(target, device):
        found.append("number")
        number(target, device)

    def starting(server):
        found.append("start")
        start(server)

    monkeypatch.setattr(internals, "number_collective_steps", numbering)
    monkeypatch.setattr(tf.distribute.Server, "start", starting)
    with ReservedPorts(2) as ports:
        cluster = Cluster(ports.addresses, task_id=task_id)
    config = session_config(cluster)
    config.experimental.collective_group_leader = leader
    start_server(cluster, config)
    assert found == calls
