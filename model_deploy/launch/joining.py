"""`JoiningLauncher`: parameter servers, and workers that join and leave while others train."""

import signal
from collections.abc import Sequence

from model_deploy.launch.launcher import Launcher
from model_deploy.launch.task import TaskProcess


class JoiningLauncher(Launcher):
    """Runs a command once for each task of a cluster whose workers may come and go.

    Each of `max_workers` workers has an address, which every task knows from the start, so that no
    task is started again when a worker joins.  The launcher starts the parameter servers and the
    first `num_workers`; SIGUSR1 asks for one more.  A worker other than the chief that is lost for
    good is left out.
    """

    signals = (*Launcher.signals, signal.SIGUSR1)

    def _first_started(self) -> Sequence[TaskProcess]:
        later = self._workers()[self._options.num_workers :]
        return [task for task in self._tasks if task not in later]

    def _workers(self) -> list[TaskProcess]:
        return [task for task in self._tasks if task.name.startswith("worker")]

    def _restart(self, failed: TaskProcess) -> bool:
        if super()._restart(failed):
            return True
        left = [task for task in self._running() if task in self._workers()]
        if failed is self._chief or failed not in self._workers():
            return False
        if len(left) < self._options.min_workers:
            self._say(f"{len(left)} workers are fewer than min_workers={self._options.min_workers}")
            return False
        self._say(f"{failed.name} {failed.ending}: going on with {len(left)} workers")
        failed.forget()
        return True

    def _follow(self) -> int | None:
        """As `Launcher._follow`; first starts the workers that were asked for."""
        while self._wanted:
            self._wanted -= 1
            free = [task for task in self._workers() if task.process is None]
            if self._chief.returncode == 0:
                self._say("no worker is started: the chief has ended")
            elif not free:
                self._say(f"no worker is started: all {self._options.most_workers} are there")
            else:
                self._say(f"starting {free[0].name}")
                self._start(free[0])
        return super()._follow()
