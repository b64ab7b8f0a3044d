"""`Launcher`: runs a command once for each task of a cluster."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from model_deploy.commands import NOT_SAVED, REFUSED
from model_deploy.launch import guard
from model_deploy.launch.flags_of_place import filled
from model_deploy.launch.options import LaunchOptions
from model_deploy.launch.output import TaskOutput
from model_deploy.launch.outputs import Outputs
from model_deploy.launch.task import EVALUATOR, TaskProcess, task_configs
from model_deploy.launch.this_machine import ThisMachine
from model_deploy.processes import visible_gpus

_SETTLE_SECS = 0.2
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Launcher:
    """Runs a command once for each task of a cluster, on this machine or on several.

    Each gets its place in the cluster by `TF_CONFIG` in its environment, and in its command as
    `flags_of_place` says.

    Args:
      options: the settings.
      addresses: `host:port` for each worker, then for each ps.
      command: the program and its arguments.
      log_dir: an existing folder for the log files.
      terminal: where the tasks' lines go, each with the name of its task.
      gpus: the GPUs that this process sees, which the workers divide; None if they are not known.
      machines: where the tasks are; by default on this machine, with these GPUs.

    Attributes:
      signals: the signals that the launcher handles; where SIGUSR1 is one of them it asks for one
        more worker.
    """

    signals: Sequence[signal.Signals] = _STOP_SIGNALS

    def __init__(
        self,
        options: LaunchOptions,
        addresses: Sequence[str],
        command: Sequence[str],
        log_dir: Path,
        terminal: BinaryIO,
        *,
        gpus: Sequence[str] | None = None,
        machines: ThisMachine | None = None,
    ) -> None:
        self._options = options
        self._machines = machines or ThisMachine(gpus)
        self._wanted = 0  # workers that were asked for
        self._command = command
        self._terminal = terminal
        self._log_dir = log_dir
        self._done_since: float | None = None  # when the end of a worker said that the run is over
        self._prepare()
        self._tasks = self._first_tasks(addresses)
        self._evaluator = self._new_evaluator(addresses) if options.evaluator else None
        self._outputs = Outputs()
        self._restarts_left = options.max_restarts
        self._stop_signal: int | None = None

    def _prepare(self) -> None:
        """Sets further attributes that `_first_tasks` needs; `Launcher` has none."""

    def _first_tasks(self, addresses: Sequence[str]) -> list[TaskProcess]:
        options = self._options
        num_workers = options.most_workers
        visible = self._machines.visible_gpus(num_workers, options.num_ps)
        workers = [f"{name}: {own}" for name, own in visible.items() if "worker" in name and own]
        if any(not each.endswith(f" {visible_gpus.NO_GPU}") for each in workers):
            self._say(f"GPUs of {', '.join(workers)}")
        return [
            self._new_task(name, tf_config, visible[name])
            for name, tf_config in task_configs(num_workers, addresses, chief=options.chief)
        ]

    def _new_evaluator(self, addresses: Sequence[str]) -> TaskProcess:
        num_workers, chief = self._options.most_workers, self._options.chief
        configs = dict(task_configs(num_workers, addresses, chief=chief, evaluator=True))
        visible = self._machines.visible_gpus(num_workers, 0, evaluator=True)
        return self._new_task(EVALUATOR, configs[EVALUATOR], visible[EVALUATOR])

    def _new_task(
        self,
        name: str,
        tf_config: str | None,
        gpus: str | None,
        more: Mapping[str, str] | None = None,
        place: str | None = None,
    ) -> TaskProcess:
        output = TaskOutput(name, self._log_dir / f"{name.replace(' ', '-')}.log", self._terminal)
        place = place or name
        more = {**(more or {}), **self._share_of_cores(place)}
        return self._machines.new_task(place, name, tf_config, output, gpus=gpus, more=more)

    def _share_of_cores(self, place: str) -> Mapping[str, str]:
        """What tells the guard of a worker which of its machine's cores are the worker's."""
        if not self._options.divide_cores:
            return {}
        workers = self._machines.workers_beside(place, self._options.most_workers)
        if place not in workers:
            return {}
        return {guard.SHARE_OF_CORES: f"{workers.index(place)}/{len(workers)}"}

    def run(self) -> int:
        """Runs the tasks to their end.

        Returns:
          0 if all ended with 0, else the exit status of the first that failed with no
          restart left; 128 + n when signal n ended the launcher.
        """
        with self._signals_handled():
            try:
                for task in [*self._first_started(), *self._evaluators]:
                    self._start(task)
                return self._watch()
            finally:
                self._end(self._everyone)
                self._machines.close()

    def _first_started(self) -> Sequence[TaskProcess]:
        """The tasks that are started first; others may be started later."""
        return self._tasks

    def _watch(self) -> int:
        """Passes on output until the run has ended; returns the exit status of the launch."""
        while True:
            self._pump()
            if self._stop_signal is not None:
                return self._report_signal(self._stop_signal)
            self._tend_evaluator()
            status = self._follow()
            if status == 0:
                self._end(self._tasks)
                return self._await_evaluator()
            if status is not None:
                return status

    def _tend_evaluator(self) -> None:
        """Starts an evaluator that was lost again; without a restart the run goes on without it."""
        for evaluator in self._evaluators:
            if not evaluator.returncode:
                continue
            if self._takes_restart():
                self._say(
                    f"{evaluator.name} {evaluator.ending}: starting it again, "
                    f"{self._restarts_left} restarts left"
                )
                self._start(evaluator)
            else:
                self._report_failure(evaluator)
                self._say(f"going on without the {evaluator.name}")
                evaluator.forget()

    def _await_evaluator(self) -> int:
        """Lets the evaluator come to the last checkpoint; returns the exit status of the launch."""
        grace = self._options.evaluator_grace_secs
        end = time.monotonic() + grace
        while True:
            self._tend_evaluator()
            if not self._running(self._evaluators):
                return 0
            if self._stop_signal is not None:
                return self._report_signal(self._stop_signal)
            if time.monotonic() >= end:
                self._say(f"the workers have ended {grace:g} s ago: ending the {EVALUATOR}")
                return 0
            self._pump()

    @property
    def _evaluators(self) -> list[TaskProcess]:
        """The evaluator, if there is one."""
        return [] if self._evaluator is None else [self._evaluator]

    @property
    def _everyone(self) -> list[TaskProcess]:
        return [*self._tasks, *self._evaluators]

    def _follow(self) -> int | None:
        """Looks at which tasks have come and gone; returns the exit status once the run is over."""
        failed = self._first_failed()
        if failed is not None and not self._restart(failed):
            return self._report_failure(failed)
        if not self._running():
            return 0
        if self._chief.returncode == 0:
            self._done_since = self._done_since or time.monotonic()
            return 0 if self._is_time_to_end() else None
        return None

    def _first_failed(self) -> TaskProcess | None:
        """The task that failed first; one that was killed, or refused a step, comes before others.

        Others fail for want of that task, and may be seen to end before it.
        """
        first = [task for task in self._tasks if task.returncode]
        if any(task.killed_by is None for task in first):
            self._pump_while_running(self._tasks, time.monotonic() + _SETTLE_SECS)
        failed = [task for task in self._tasks if task.returncode]
        if failed and (lost := self._machines.newly_lost()):
            self._say("\n".join(lost))
            self._pump_while_running(self._tasks, time.monotonic() + _SETTLE_SECS)
            failed = [task for task in self._tasks if task.returncode]
        return min(
            failed,
            key=lambda task: (self._is_for_want_of_another(task), task not in first),
            default=None,
        )

    @staticmethod
    def _is_for_want_of_another(task: TaskProcess) -> bool:
        is_first = task.returncode == REFUSED or task.killed_by is not None
        return not is_first and not task.is_cut_off

    def _is_time_to_end(self) -> bool:
        """Whether all tasks have ended, or had time to since the end of the chief."""
        running = self._running()
        late = time.monotonic() - (self._done_since or 0) >= self._options.grace_secs
        if running and late:
            names = ", ".join(task.name for task in running)
            self._say(f"the chief has ended: ending {names}")
        return not running or late

    @property
    def _chief(self) -> TaskProcess:
        return next(task for task in self._tasks if task.name == "worker 0")

    def _restart(self, failed: TaskProcess) -> bool:
        """Starts a failed task, or all tasks, again; returns whether a restart was left."""
        if not self._takes_restart():
            return False
        what = f"{failed.name} {failed.ending}"
        if self._chief.returncode == 0:
            # It would find no chief.
            self._say(f"{what} after the chief had ended: not starting it again")
            failed.forget()
            return True
        whom = "all tasks" if self._options.restarts_all else failed.name
        left = "not counted" if self._is_refused else f"{self._restarts_left} restarts left"
        self._say(f"{what}: starting {whom} again, {left}")
        if self._options.restarts_all:
            self._end(self._tasks)
        for task in self._tasks if self._options.restarts_all else [failed]:
            self._start(task)
        return True

    @property
    def _is_refused(self) -> bool:
        """Whether all are to start again as TensorFlow has refused a step: no fault of the run."""
        return self._options.restarts_all and self._has_ended_with(REFUSED)

    def _has_ended_with(self, status: int) -> bool:
        return any(task.returncode == status for task in self._tasks)

    def _takes_restart(self) -> bool:
        """Counts one more restart; False if none was left, or none would help."""
        if self._has_ended_with(NOT_SAVED):
            self._say("a task could not save its last steps: see to its train_dir before a restart")
            return False
        if self._is_refused:
            return True
        if not self._restarts_left:
            return False
        self._restarts_left -= 1
        return True

    def _start(self, task: TaskProcess) -> None:
        while not self._machines.may_start(task):
            self._pump()
        task.start(filled(self._command, task.tf_config))
        self._outputs.add(task)

    def _pump(self) -> None:
        """Passes on the output of tasks, after waiting a moment for some."""
        self._outputs.pass_on(self._running(self._everyone))

    def _end(self, tasks: Sequence[TaskProcess]) -> None:
        """Ends those that still run: by SIGTERM, and by SIGKILL `grace_secs` later.

        The parameter servers come last: a chief that is told to end saves what they keep.
        """
        servers = [task for task in tasks if task.name.startswith("ps ")]
        self._end_together([task for task in tasks if task not in servers])
        self._end_together(servers)

    def _end_together(self, tasks: Sequence[TaskProcess]) -> None:
        for task in self._running(tasks):
            task.signal(signal.SIGTERM)
        self._pump_while_running(tasks, time.monotonic() + self._options.grace_secs)
        for task in self._running(tasks):
            self._say(f"{task.name} did not end in {self._options.grace_secs:g} s: killing it")
            task.signal(signal.SIGHUP)
        self._pump_while_running(tasks, float("inf"))

    def _running(self, tasks: Sequence[TaskProcess] | None = None) -> list[TaskProcess]:
        """Which of these tasks, or else of those that train, run."""
        tasks = self._tasks if tasks is None else tasks
        return [task for task in tasks if task.process and task.returncode is None]

    def _pump_while_running(self, tasks: Sequence[TaskProcess], deadline: float) -> None:
        while self._running(tasks) and time.monotonic() < deadline:
            self._pump()

    def _report_signal(self, number: int) -> int:
        self._say(f"{signal.Signals(number).name}: ending all tasks")
        return 128 + number

    def _report_failure(self, failed: TaskProcess) -> int:
        lines = [f"{failed.name} {failed.ending}; its last lines:"]
        lines += [f"    {line}" for line in failed.output.tail]
        self._say("\n".join([*lines, f"the whole log is {failed.output.path}"]))
        return failed.returncode or 0

    def _say(self, text: str) -> None:
        for line in text.split("\n"):
            self._terminal.write(f"launch| {line}\n".encode())
        self._terminal.flush()

    @contextlib.contextmanager
    def _signals_handled(self) -> Iterator[None]:
        before: dict[int, Callable[..., Any] | int | None] = {
            number: signal.signal(number, self._note_signal) for number in self.signals
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._outputs.close()
            for task in self._everyone:
                task.output.close()

    def _note_signal(self, number: int, _: object) -> None:
        if number == signal.SIGUSR1:
            self._wanted += 1
        else:
            self._stop_signal = number
