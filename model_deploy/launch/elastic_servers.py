"""`ElasticServersLauncher`: an elastic run with parameter servers, which stay while workers go."""

from collections.abc import Sequence

from model_deploy.launch.elastic import ElasticLauncher
from model_deploy.launch.task import TaskProcess, task_configs
from model_deploy.processes import WORLD_FILE


class ElasticServersLauncher(ElasticLauncher):
    """Runs a command once for each parameter server, and for each worker of an elastic run.

    TensorFlow's servers know each other by fixed addresses.  So each of `max_workers` places has an
    address, which a worker that is started in the place of a lost worker gets.  When a parameter
    server is lost it is started again, which `max_restarts` counts, too, and all workers get a new
    world.

    It takes the arguments of `Launcher`: options with `max_workers` and `num_ps`, and addresses of
    each worker that there may be, then of each ps.
    """

    def _first_tasks(self, addresses: Sequence[str]) -> list[TaskProcess]:
        self._addresses = addresses
        self._tf_configs = dict(task_configs(self._size, addresses, chief=self._options.chief))
        visible = self._machines.visible_gpus(self._size, self._options.num_ps)
        more = {WORLD_FILE: str(self._path.absolute())}
        self._servers = [
            self._new_task(name, tf_config, visible[name], more)
            for name, tf_config in self._tf_configs.items()
            if name.startswith("ps")
        ]
        return [*self._servers, *super()._first_tasks(addresses)]

    def _follow(self) -> int | None:
        for server in self._servers:
            if server.returncode and self._done_since is None:
                if not self._restart_server(server):
                    return self._report_failure(server)
                self._write_world([t for t in self._running_workers() if self._is_there(t)])
        return super()._follow()

    def _restart_server(self, server: TaskProcess) -> bool:
        """Starts a parameter server again that has failed; returns whether a restart was left."""
        if not self._takes_restart():
            return False
        self._say(f"{server.name} {server.ending}: starting it again")
        self._start(server)
        return True

    def _has_ended(self, task: TaskProcess) -> None:
        if task not in self._servers:
            super()._has_ended(task)

    def _tf_config(self, place: str) -> str | None:
        return self._tf_configs[place]

    def _new_addresses(self, there: Sequence[TaskProcess]) -> Sequence[str]:
        places = [self._place_of[task.name] for task in there]
        return [self._addresses[int(place.removeprefix("worker "))] for place in places]
