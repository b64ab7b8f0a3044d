"""The processes of a run: the cluster, the workers of an elastic world, the GPUs that each sees."""

from model_deploy.processes import visible_gpus
from model_deploy.processes.cluster_spec import (
    JOB_NAMES,
    Cluster,
    Task,
    check_address,
    check_task_id,
)
from model_deploy.processes.elastic_world import (
    WORKER,
    WORLD_FILE,
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
    "JOB_NAMES",
    "WORKER",
    "WORLD_FILE",
    "Cluster",
    "Task",
    "World",
    "all_wait",
    "asks_for_world",
    "begun_file",
    "check_address",
    "check_task_id",
    "read_world",
    "ready_file",
    "visible_gpus",
    "waiting_file",
    "write_world",
]
