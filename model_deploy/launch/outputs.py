"""`Outputs`: the output of many processes, passed on as it comes."""

import selectors
from collections.abc import Iterable

from model_deploy.launch.task import TaskProcess

_POLL_SECS = 0.1


class Outputs:
    """The outputs of the tasks that run."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def add(self, task: TaskProcess) -> None:
        """Passes on the output of a task that was started."""
        self._selector.register(task.process.stdout, selectors.EVENT_READ, task)

    def pass_on(self, running: Iterable[TaskProcess]) -> None:
        """Passes on output, after waiting a moment for some; `running` are those not yet closed."""
        for key, _ in self._selector.select(_POLL_SECS):
            if not key.data.read():
                self._selector.unregister(key.fileobj)  # it is at its end
        for task in running:
            # Not at the end of the output: a process without output may go on, and a stray one
            # may keep the output open.
            if task.process.poll() is not None:
                if task.process.stdout in {
                    key.fileobj for key in self._selector.get_map().values()
                }:
                    self._selector.unregister(task.process.stdout)
                task.close_output()

    def close(self) -> None:
        """Watches none any more."""
        self._selector.close()
