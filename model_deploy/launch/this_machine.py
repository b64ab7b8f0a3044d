"""`ThisMachine`: where the tasks of a launch are, if all are here; other places are as this one."""

from collections.abc import Mapping, Sequence

from model_deploy.launch.output import TaskOutput
from model_deploy.launch.ports import ReservedPorts
from model_deploy.launch.task import TaskProcess, task_gpus

# How many worlds have their ports reserved: the newest one, and the one before it, in which some
# workers may still be.
KEPT_WORLDS = 2


class ThisMachine:
    """The machine of the launcher.

    A *place* is that of a task, such as `worker 1`, `ps 0` or `evaluator`.  In an elastic run
    workers that are started one after the other have the same place.

    Args:
      gpus: the GPUs that this process sees, which the workers divide; None if they are not known.
    """

    def __init__(self, gpus: Sequence[str] | None = None) -> None:
        self._gpus = gpus
        self._ports: list[ReservedPorts] = []

    def visible_gpus(
        self, num_workers: int, num_ps: int, *, evaluator: bool = False
    ) -> dict[str, str | None]:
        """`CUDA_VISIBLE_DEVICES` of each place, see `task_gpus`."""
        return task_gpus(num_workers, num_ps, self._gpus, evaluator=evaluator)

    def new_task(
        self,
        place: str,
        name: str,
        tf_config: str | None,
        output: TaskOutput,
        *,
        gpus: str | None,
        more: Mapping[str, str] | None,
    ) -> TaskProcess:
        """A task for a place, not started; see `TaskProcess` for the arguments."""
        del place
        return TaskProcess(name, tf_config, output, gpus, more)

    def new_addresses(self, places: Sequence[str]) -> Sequence[str]:
        """Addresses for workers in a new world, with ports that no world before has had.

        Raises:
          ConnectionError: if a machine does not answer; it then has no places any more.
        """
        ports = ReservedPorts(len(places))
        self._ports.append(ports)
        while len(self._ports) > KEPT_WORLDS:
            self._ports.pop(0).close()
        return ports.addresses

    def worker_places(self, most: int) -> list[str]:
        """Places in which a worker may be started, at most so many."""
        return [f"worker {i}" for i in range(most)]

    def workers_beside(self, place: str, most: int) -> list[str]:
        """Places of workers on the machine of a place, of at most so many workers in all."""
        del place
        return self.worker_places(most)

    def may_start(self, task: TaskProcess) -> bool:
        """Whether a task may be started now; else when some output has been read."""
        del task
        return True

    def changes(self) -> list[str]:
        """A line for each change of the machines since the last call."""
        return []

    def newly_lost(self) -> list[str]:
        """A line for each machine that answered before, and does not now."""
        return []

    def close(self) -> None:
        """Gives the ports of worlds back."""
        for ports in self._ports:
            ports.close()
