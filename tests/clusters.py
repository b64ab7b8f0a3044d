"""Clusters of TensorFlow servers inside the test process, on free ports."""

import contextlib
import socket

import tensorflow.compat.v1 as tf

from tests import devices


def free_ports(count):
    """Ports of the loopback that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def start_cluster(num_workers, num_ps, devices_per_worker=2):
    """Servers of all tasks; returns the targets of the workers.

    The servers live until the process ends: TensorFlow cannot stop them.
    """
    ports = free_ports(num_workers + num_ps)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    cluster = tf.train.ClusterSpec(
        {"worker": addresses[:num_workers], "ps": addresses[num_workers:]}
    )
    config = devices.session_config(devices_per_worker)
    servers = [
        tf.train.Server(cluster, job_name=job, task_index=task, config=config)
        for job, count in (("ps", num_ps), ("worker", num_workers))
        for task in range(count)
    ]
    return [server.target for server in servers[num_ps:]]


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
