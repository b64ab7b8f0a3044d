"""Clusters of TensorFlow servers inside the test process, for all its tests.

There is one for each number of workers.  As in a program with several trainings, most sessions are
not the first of their servers, which keep shapes of collective ops.  Steps with such ops are
numbered, and a worker that took no part in some of them would wait for ever in its next one.

A server takes 40 MB and lives until the process ends: TensorFlow cannot stop it.
"""

import functools
import itertools

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.launch import ReservedPorts
from tests import devices

LEADER = "/job:worker/replica:0/task:0"
_NUM_PS, _DEVICES_PER_TASK = 2, 4
# Half of what a test may take: an error says more than a test that is killed.
_STEP_MSECS = 300_000


def workers(number):
    """Targets of so many workers with two parameter servers, which keep nothing of before."""
    return [server.target for server in servers(number)["worker"]]


def servers(num_workers):
    """The servers of each job, which keep no variable and no queue of earlier sessions."""
    found = _servers(num_workers)
    for server in found["worker"]:
        tf.Session.reset(server.target)
    return found


@functools.cache
def _servers(num_workers):
    config = devices.session_config(_DEVICES_PER_TASK)
    config.experimental.collective_group_leader = LEADER
    config.operation_timeout_in_ms = _STEP_MSECS
    with ReservedPorts(num_workers + _NUM_PS) as ports:
        addresses = {"worker": ports.addresses[:num_workers], "ps": ports.addresses[num_workers:]}
        made = {
            job: [
                tf.train.Server(addresses, job, task, config=config, start=False)
                for task in range(len(own))
            ]
            for job, own in addresses.items()
        }
    internals.number_collective_steps(made["worker"][0].target, LEADER)
    for server in itertools.chain(*made.values()):
        server.start()
    return made


def trace_placement(session, op):
    """Runs `op` once; returns the device of each node that ran, by its name."""
    trace = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    session.run(op, options=options, run_metadata=trace)
    return {
        node.node_name: device.device.replace("/replica:0", "")
        for device in trace.step_stats.dev_stats
        for node in device.node_stats
    }
