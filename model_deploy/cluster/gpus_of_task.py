"""The GPUs of a task: a parameter server has none, workers divide those that SLURM shows to all."""

from collections.abc import Mapping

from model_deploy.processes import Cluster, visible_gpus


def own_gpus(environ: Mapping[str, str], cluster: Cluster) -> str | None:
    """The value that `CUDA_VISIBLE_DEVICES` is to have in this process.

    SLURM binds GPUs to tasks with `--gpus-per-task` or `--gpu-bind`: then
    `CUDA_VISIBLE_DEVICES` has a task's own, fewer than the step has on the machine
    (`SLURM_STEP_GPUS`), and stays as it is.  Otherwise, as with `--gres=gpu:4`, all tasks of a
    machine see all of its GPUs, and its workers divide them in the order of their indices
    (`SLURM_LOCALID` counts the parameter servers, too, which take none).

    Args:
      environ: environment variables, `os.environ`.
      cluster: the cluster and this process's task.

    Returns:
      The value; None if the variable is to stay as it is: SLURM has bound the GPUs or was not
      there, or no other worker is on the machine.  An evaluator keeps what it sees.
    """
    own = cluster.own
    if own.job_name == "ps":
        return visible_gpus.NO_GPU
    here = cluster.workers_here
    visible = visible_gpus.listed(environ)
    of_step = environ.get("SLURM_STEP_GPUS") or environ.get("SLURM_JOB_GPUS") or ""
    if len(here) <= 1 or not visible or not of_step or environ.get("SLURM_GPUS_PER_TASK"):
        return None
    if len(visible) < len(of_step.split(",")):
        return None
    return visible_gpus.share(visible, here.index(own), len(here))
