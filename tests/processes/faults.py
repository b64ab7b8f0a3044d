"""Cases of faults: who is hit by what, when, in which way to train; and what must be true then."""

import contextlib
import dataclasses
import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.cluster import Task, connection_error
from model_deploy.launch import ReservedPorts
from tests.processes.harness import Processes, Tasks
from tests.processes.training import undisturbed

STEPS, SAVE_STEPS, WORKERS = 60, 20, 2
PROGRAM = [sys.executable, "-m", "tests.processes.training"]
# No run with one fault may take longer, on a machine that does other things, too.
TIME_BOUND_SECS = 120.0
# Nobody may take longer to end: some 3 seconds where nothing else takes the processors.
END_SECS = 30.0


@dataclasses.dataclass(frozen=True)
class Case:
    """One fault.

    Attributes:
      mode: how replicas train together.
      victim: the task that is hit, such as `worker 1`.
      signal: what hits it.
      moment: when: after a step, given by its number; `start`, when the victim has printed its
        first line; `save`, while the chief writes a checkpoint; `end`, when the victim, or for
        parameter servers the chief, has made its last step.
      stop_secs: how long SIGSTOP holds.
    """

    mode: str
    victim: str
    signal: signal.Signals
    moment: int | str
    stop_secs: float = 10.0

    def __str__(self):
        return f"{self.mode}-{self.victim.replace(' ', '')}-{self.signal.name}-{self.moment}"

    @property
    def num_ps(self):
        """Parameter servers of the case."""
        return 0 if self.mode == "all_reduce" else 2

    @property
    def num_workers(self):
        """Workers of the case, a backup included."""
        return WORKERS + (self.mode == "backup")

    @property
    def hits_ps(self):
        """Whether the victim is a parameter server."""
        return self.victim.startswith("ps")

    @property
    def kills(self):
        """Whether the victim ends by the signal."""
        return self.signal != signal.SIGSTOP

    @property
    def watched(self):
        """The task whose progress decides about the moment."""
        at_chief = self.moment == "save" or (self.hits_ps and self.moment != "start")
        return "worker 0" if at_chief else self.victim

    @property
    def step(self):
        """The step that was made for certain when the moment has come."""
        return {"start": 1, "save": SAVE_STEPS, "end": STEPS}.get(self.moment, self.moment)

    @property
    def goes_on_without(self):
        """Whether there is nothing left to do for the victim, so that it is not started again."""
        return self.moment == "end" and self.victim != "worker 0" and not self.hits_ps

    @property
    def waits_for_restart(self):
        """Whether the chief stands still until the victim is back; it might end before that."""
        return self.moment == "end" and self.hits_ps and self.kills


def run_case(case, folder):
    """Runs a cluster through a fault and checks every promise; returns the seconds it took."""
    began = time.monotonic()
    with Processes(folder) as processes:
        if case.mode == "all_reduce":
            _run_launched(case, folder, processes)
        else:
            _Cluster(case, folder, processes).run()
        processes.assert_no_orphan()
    # A worker that is killed within a rotated step loses a part of it.
    is_whole = case.mode == "rotated" and case.signal != signal.SIGKILL
    is_exact = is_whole or case.mode in ("synchronous", "all_reduce")
    check_result(folder / "train", is_exact=is_exact)
    secs = time.monotonic() - began
    assert secs < TIME_BOUND_SECS, f"{case} took {secs:.0f} s"
    return secs


def check_result(train_dir, *, is_exact):
    """The newest checkpoint loads, is of the last step, and has the weights, where exact."""
    path = tf.train.latest_checkpoint(str(train_dir))
    values = tf.train.load_checkpoint(path)
    assert values.get_tensor("global_step") == STEPS, path
    found = np.append(values.get_tensor("weights"), values.get_tensor("bias"))
    assert np.isfinite(found).all()
    if is_exact:
        np.testing.assert_allclose(found, undisturbed(STEPS, WORKERS), atol=1e-6)


def _step_line(step):
    """Matches the lines of `step` and later steps, of the first session of a process."""
    return rf"^(?:worker \d\| )?step ({'|'.join(str(i) for i in range(step, STEPS + 1))})/"


def training_flags(folder, mode):
    """Flags of the program for one run, whichever the task."""
    return [
        f"--mode={mode}",
        f"--train_dir={folder / 'train'}",
        f"--max_number_of_steps={STEPS}",
        f"--save_interval_steps={SAVE_STEPS}",
    ]


def _stop_flags(case, folder):
    """Flags that let the watched task stop itself at the moment of the case."""
    if case.moment not in ("save", "end"):
        return []
    return [
        f"--stop_task={case.watched}",
        f"--stop_moment={case.moment}",
        f"--stop_mark={_mark(folder)}",
    ]


def _mark(folder):
    return folder / "stopped"


def _wait_until_stopped(pid, folder):
    """Waits until a process has stopped itself."""
    Processes.wait_until(_mark(folder).exists, message=lambda: "the moment did not come")
    Processes.wait_until(lambda: _state(pid) == "T", message=lambda: f"it is {_state(pid)}")


def _state(pid):
    """The state of a process, one letter; T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _hit(case, victim, watched):
    """Signals the process id `victim`; lets `watched` go on, should it have stopped itself."""
    os.kill(victim, case.signal)
    if watched != victim and not case.waits_for_restart:
        _let_go_on(watched)
    if not case.kills:
        time.sleep(case.stop_secs)  # the fault itself
    _let_go_on(victim)


def _let_go_on(pid):
    with contextlib.suppress(ProcessLookupError):  # it has been killed
        os.kill(pid, signal.SIGCONT)


def _run_launched(case, folder, processes):
    """All-reduce: everyone stops, and the launcher starts all again."""
    program = [*PROGRAM, *training_flags(folder, case.mode), *_stop_flags(case, folder)]
    launch = processes.launch([f"--num_workers={case.num_workers}", "--max_restarts=1"], program)

    def pid(name):
        return int(launch.wait_for_line(rf"^{name}\| process (\d+)$").group(1))

    if case.moment == "start":
        launch.wait_for_line(rf"^{case.victim}\| cluster from")
    elif _stop_flags(case, folder):
        _wait_until_stopped(pid(case.watched), folder)
    else:
        launch.wait_for_line(_step_line(case.step))
    _hit(case, pid(case.victim), pid(case.watched))
    assert launch.wait() == 0, launch.log
    if case.kills and case.moment != "end":
        assert "starting all tasks again" in launch.log


class _Cluster:
    """The processes of a case with parameter servers."""

    def __init__(self, case, folder, processes):
        self._case, self._folder, self._processes = case, folder, processes
        self._gate = folder / "gate"
        self._ports = ReservedPorts(case.num_workers + case.num_ps)
        flags = [*training_flags(folder, case.mode), *_stop_flags(case, folder)]
        addresses = self._ports.addresses
        self._running = Tasks(processes, addresses, case.num_ps, [*PROGRAM, *flags])
        self._workers = [f"worker {i}" for i in range(case.num_workers)]
        self._names = [*(f"ps {i}" for i in range(case.num_ps)), *self._workers]

    def run(self):
        """Starts all, hits one, starts it again, and sees all of them end with 0."""
        case = self._case
        with self._ports:
            for name in self._names:
                self._start(name)
            self._wait_for_moment()
            _hit(case, self._running[case.victim].pid, self._running[case.watched].pid)
            left = set(self._names)
            if case.kills:
                self._see_it_end()
                if case.goes_on_without:
                    left.remove(case.victim)
                else:
                    self._restart()
            self._gate.touch()
            for name in sorted(left):
                assert self._running[name].wait() == 0, (name, self._running[name].log)
            self._check_logs()

    def _wait_for_moment(self):
        case, watched = self._case, self._running[self._case.watched]
        if case.moment == "start":
            watched.wait_for_line("^cluster from")
        elif _stop_flags(case, self._folder):
            _wait_until_stopped(watched.pid, self._folder)
        else:
            for name in self._workers:
                self._running[name].wait_for_line(_step_line(1))
            watched.wait_for_line(_step_line(case.step))

    def _see_it_end(self):
        """The victim ends by the signal; with a backup, nobody waits for it."""
        victim = self._running[self._case.victim]
        assert victim.wait(END_SECS) == 128 + self._case.signal, victim.log
        if self._case.mode == "backup" and self._case.victim in self._workers[1:]:
            self._running["worker 0"].wait_for_line(r"made its last step|waits|step 5\d/")

    def _restart(self):
        case = self._case
        restarted = self._start(case.victim)
        if case.waits_for_restart:
            index = int(case.victim.split()[1])
            task = Task("ps", index, self._running.address_of[case.victim])
            self._processes.wait_until(lambda: connection_error(task, 1.0) is None)
            _let_go_on(self._running[case.watched].pid)
        if case.victim == "worker 0" and case.moment != "start":
            restarted.wait_for_line(r"the parameter servers are at step \d+: going on there")
        if case.victim in self._workers and case.moment != "end":
            restarted.wait_for_line(_step_line(case.step))  # it has rejoined

    def _check_logs(self):
        """What is lost is at most one save interval, and nothing where no ps was lost."""
        case = self._case
        logs = "".join(process.log for process in self._running.values())
        lost = [int(n) for n in re.findall(r"(\d+) steps are lost", logs)]
        if case.hits_ps and case.kills:
            if case.moment not in ("start", "end"):
                assert "going on from step" in self._running["worker 0"].log
            # Asynchronous steps that a worker has not reported yet come on top.
            assert max(lost, default=0) <= SAVE_STEPS + WORKERS, lost
        else:
            assert not lost, logs

    def _start(self, name):
        case = self._case
        # The gate keeps the others from the end until the victim is back. Of replicas with a
        # backup it keeps one, so that the victim's gradients are needed again. Where steps would
        # be lost it keeps them from making more while the chief stands still in its save.
        loses = case.moment == "save" and case.hits_ps and name != "worker 0"
        hold_at = SAVE_STEPS + 1 if loses else STEPS - 8
        holds = case.mode == "asynchronous" or name == "worker 2"
        holds = holds and case.moment != "end" and name not in self._running
        hold_at = hold_at if holds else 0
        return self._running.start(name, f"--hold_at={hold_at}", f"--gate={self._gate}")
