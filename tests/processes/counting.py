"""A program for a cluster without a model: its workers count a shared step up to a target.

python -m tests.processes.counting --max_number_of_steps=TARGET [flags of the cluster]
"""

import dataclasses
import os
import sys
import time

import tensorflow.compat.v1 as tf

from model_deploy import cluster as cluster_lib
from model_deploy.commands import option, parse_options
from tests import modes


@dataclasses.dataclass(frozen=True)
class CountingOptions(cluster_lib.ClusterOptions):
    """The settings of a cluster, and how far it counts."""

    max_number_of_steps: int = option(100, "the target", minimum=1)
    train_dir: str = option("", "not used: nothing is saved")


def main(options):
    """Runs this process's task to its end."""
    cluster, note = cluster_lib.resolve(options, os.environ)
    print(note)
    config = cluster_lib.session_config(cluster)
    server = cluster_lib.start_server(cluster, config)
    if cluster.job_name == "ps":
        cluster_lib.serve_until_done(server, cluster, config)
        print("served")
        return
    cluster_lib.wait_for_tasks(cluster_lib.tasks_needed(cluster), options.start_timeout)
    _count(cluster, server, config, options.max_number_of_steps)


def _count(cluster, server, config, target):
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
        ready = tf.is_variable_initialized(step)
        advance = step.assign_add(1)
    end_ops = cluster_lib.build_end_ops(cluster)
    with tf.Session(server.target, config=config) as session:
        # A chief that was started again takes the count as it is.
        if cluster.is_chief and not session.run(ready):
            session.run(step.initializer)
        while not session.run(ready):
            time.sleep(0.05)
        reached = 0
        while reached < target:
            reached = cluster_lib.run_unless_refused(lambda: session.run(advance))
        print(f"last step {reached} at {time.monotonic()}")
        cluster_lib.signal_done(session, end_ops, cluster)


if __name__ == "__main__":
    modes.enter()
    main(parse_options(sys.argv, CountingOptions, __doc__))
