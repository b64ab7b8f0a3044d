"""TensorFlow's reader of SLURM's variables; seen in TensorFlow 2.16 to 2.21."""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow.compat.v1 as tf


class SlurmStep(NamedTuple):
    """The tasks of a SLURM step.

    Attributes:
      addresses: `host:port` of the tasks of each job, by name of the job.
      job_name: the job of this process.
      task_id: index of this process in its job.
    """

    addresses: dict[str, list[str]]
    job_name: str
    task_id: int


def slurm_step(jobs: Mapping[str, int], port: int) -> SlurmStep:
    """Reads the `SLURM_` variables of `os.environ`, machines in SLURM's order.

    TensorFlow sorts machines as text, n10 before n2, so they are numbered while it sorts.
    Overrides `SlurmClusterResolver._resolve_task_configuration`.

    Args:
      jobs: number of tasks by name of the job; tasks are numbered by the jobs' names, ps first.
      port: port of the first task on a machine.

    Raises:
      KeyError: naming a missing variable.
      RuntimeError: if SLURM has fewer tasks than `jobs`.
    """

    class Resolver(tf.distribute.cluster_resolver.SlurmClusterResolver):
        def _resolve_task_configuration(self) -> dict[str, int]:
            found = super()._resolve_task_configuration()
            return {f"{i:06d}|{host}": count for i, (host, count) in enumerate(found.items())}

    # SLURM decides which GPUs a task sees; the resolver fails to divide by 0 GPUs.
    resolver = Resolver(
        dict(jobs),
        port_base=port,
        gpus_per_node=sum(jobs.values()),
        gpus_per_task=1,
        auto_set_gpu=False,
    )
    addresses = {
        job: [address.partition("|")[2] for address in numbered]
        for job, numbered in resolver.cluster_spec().as_dict().items()
    }
    return SlurmStep(addresses, *resolver.get_task_info())
