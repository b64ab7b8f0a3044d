"""Clusters of TensorFlow servers inside the test process, on ports that nobody else gets."""

import tensorflow.compat.v1 as tf

from model_deploy.launch import ReservedPorts
from tests import devices


def start_cluster(num_workers, num_ps, devices_per_worker=2):
    """Servers of all tasks; returns the targets of the workers.

    The servers live until the process ends: TensorFlow cannot stop them.
    """
    config = devices.session_config(devices_per_worker)
    with ReservedPorts(num_workers + num_ps) as ports:
        workers, ps = ports.addresses[:num_workers], ports.addresses[num_workers:]
        cluster = tf.train.ClusterSpec({"worker": workers, "ps": ps})
        servers = [
            tf.train.Server(cluster, job_name=job, task_index=task, config=config)
            for job, count in (("ps", num_ps), ("worker", num_workers))
            for task in range(count)
        ]
    return [server.target for server in servers[num_ps:]]


def start_workers(num_workers, config):
    """Servers of workers by all-reduce, with this `tf.ConfigProto`; returns their targets."""
    with ReservedPorts(num_workers) as ports:
        servers = [
            tf.train.Server({"worker": ports.addresses}, "worker", task, config=config)
            for task in range(num_workers)
        ]
    return [server.target for server in servers]


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
