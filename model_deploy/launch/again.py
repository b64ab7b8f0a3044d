"""Starts the command of this process again, as the tasks of a cluster on this machine."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol


class OfCluster(Protocol):
    """Options of a command that can start its own cluster."""

    @property
    def num_ps(self) -> int:
        """Parameter servers to start; 0 to train in this process."""

    @property
    def num_workers(self) -> int:
        """Workers to start."""

    @property
    def ps_hosts(self) -> str:
        """Parameter servers of a cluster that is there already; '' for none."""

    @property
    def worker_hosts(self) -> str:
        """Workers of a cluster that is there already; '' for none."""


def launched_again(environ: Mapping[str, str], options: OfCluster, argv: Sequence[str]) -> bool:
    """Starts a cluster of processes with the same flags, if asked for, and waits for its end.

    Args:
      environ: the environment, in which `TF_CONFIG` may place this process in a cluster.
      options: the options of this process.
      argv: its program and arguments.

    Returns:
      Whether that was done; False where this process has a task of its own to do.

    Raises:
      SystemExit: with the exit status of the cluster, if it is not 0.
    """
    in_cluster = options.ps_hosts or options.worker_hosts or "TF_CONFIG" in environ
    if in_cluster or not options.num_ps:
        return False
    numbers = [f"--num_workers={options.num_workers}", f"--num_ps={options.num_ps}"]
    launch = [sys.executable, "-m", "model_deploy.launch", *numbers, "--"]
    status = subprocess.call([*launch, sys.executable, *argv])
    if status:
        sys.exit(status)
    return True
