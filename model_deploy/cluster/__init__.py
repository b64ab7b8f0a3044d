"""Clusters: their description, the servers of their tasks, their start and their end."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.cluster.closing import (
        close_session,
        run_until_closed,
        wait_at_exit,
    )
    from model_deploy.cluster.cutting import LostSteps
    from model_deploy.cluster.end_of_process import end_process
    from model_deploy.cluster.ending import (
        EndOps,
        build_end_ops,
        end_servers,
        serve_until_done,
        signal_done,
        wait_for_workers,
    )
    from model_deploy.cluster.gpus_of_task import own_gpus
    from model_deploy.cluster.network import connection_error, names_of, unreachable
    from model_deploy.cluster.options import ClusterOptions
    from model_deploy.cluster.refusals import (
        end_after_refusal,
        is_given_up,
        is_refusal,
        run_unless_refused,
        unsure_end,
    )
    from model_deploy.cluster.server import give_up_lost_servers, session_config, start_server
    from model_deploy.cluster.sources import (
        Resolved,
        cluster_from_flags,
        cluster_from_slurm,
        resolve,
    )
    from model_deploy.cluster.standing_still import StandStill
    from model_deploy.cluster.tf_config import cluster_from_tf_config
    from model_deploy.cluster.waiting import tasks_needed, wait_for_loss, wait_for_tasks
    from model_deploy.processes import (
        WORKER,
        WORLD_FILE,
        Cluster,
        Task,
        World,
        all_wait,
        asks_for_world,
        begun_file,
        read_world,
        ready_file,
        waiting_file,
        write_world,
    )

__all__ = [
    "WORKER",
    "WORLD_FILE",
    "Cluster",
    "ClusterOptions",
    "EndOps",
    "LostSteps",
    "Resolved",
    "StandStill",
    "Task",
    "World",
    "all_wait",
    "asks_for_world",
    "begun_file",
    "build_end_ops",
    "close_session",
    "cluster_from_flags",
    "cluster_from_slurm",
    "cluster_from_tf_config",
    "connection_error",
    "end_after_refusal",
    "end_process",
    "end_servers",
    "give_up_lost_servers",
    "is_given_up",
    "is_refusal",
    "names_of",
    "own_gpus",
    "read_world",
    "ready_file",
    "resolve",
    "run_unless_refused",
    "run_until_closed",
    "serve_until_done",
    "session_config",
    "signal_done",
    "start_server",
    "tasks_needed",
    "unreachable",
    "unsure_end",
    "wait_at_exit",
    "wait_for_loss",
    "wait_for_tasks",
    "wait_for_workers",
    "waiting_file",
    "write_world",
]

import_when_used(__name__)
