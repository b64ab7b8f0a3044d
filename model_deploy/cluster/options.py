"""`ClusterOptions`: the settings, each a flag, that describe and start a cluster."""

import dataclasses
from typing import ClassVar

from model_deploy.commands import Options, option
from model_deploy.processes import JOB_NAMES

CLUSTER_SOURCES = ("auto", "flags", "tf_config", "slurm", "none")
# As TensorFlow's resolver for SLURM.
DEFAULT_SLURM_PORT = 8888


@dataclasses.dataclass(frozen=True)
class ClusterOptions(Options):
    """Which processes train together, which of them this one is, and how long it waits."""

    topic: ClassVar[str] = "cluster"

    job_name: str | None = option(
        None,
        "job of this process; default: worker; an evaluator follows the checkpoints of the others",
        choices=JOB_NAMES,
    )
    task_id: int | None = option(
        None, "index of this process in its job; worker 0 is the chief; default: --task", minimum=0
    )
    ps_hosts: str = option("", "host:port of each parameter server, separated by commas")
    worker_hosts: str = option("", "host:port of each worker, the chief first, separated by commas")
    cluster_source: str = option(
        "auto",
        "where the description of the cluster comes from; auto: the flags, or else TF_CONFIG, or "
        "else SLURM",
        choices=CLUSTER_SOURCES,
    )
    slurm_port: int = option(
        DEFAULT_SLURM_PORT,
        "port of the first task on each machine under SLURM; the next have the next ports",
        minimum=1,
        maximum=65535,
    )
    allow_public_addresses: bool = option(
        False,
        "let this process's server listen on a public address, or on all of the machine's: "
        "whoever reaches it can run code there",
    )
    start_timeout: float = option(
        300.0, "seconds to wait for the tasks that this one needs in order to start", above=0
    )
