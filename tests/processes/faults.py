"""Cases of faults: who dies how, when, in which way to train; and what must be true afterwards."""

import dataclasses
import os
import re
import signal
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.launch import ReservedPorts
from tests.processes.harness import LAUNCH, Processes
from tests.processes.training import undisturbed

STEPS, SAVE_STEPS, WORKERS = 60, 20, 2
MODULE = "tests.processes.training"
PROGRAM = [sys.executable, "-m", MODULE]
# No run with one fault may take longer, on a machine that does other things, too.
TIME_BOUND_SECS = 120.0


@dataclasses.dataclass(frozen=True)
class Case:
    """One fault.

    Attributes:
      mode: how replicas train together.
      victim: the task that is hit, such as `worker 1`.
      signal: what hits it.
      step: the step after which it does.
      stop_secs: how long SIGSTOP holds.
    """

    mode: str
    victim: str
    signal: signal.Signals
    step: int
    stop_secs: float = 10.0

    def __str__(self):
        return f"{self.mode}-{self.victim.replace(' ', '')}-{self.signal.name}-{self.step}"

    @property
    def num_ps(self):
        """Parameter servers of the case."""
        return 0 if self.mode == "all_reduce" else 2

    @property
    def num_workers(self):
        """Workers of the case, a backup included."""
        return WORKERS + (self.mode == "backup")


def run_case(case, folder):
    """Runs a cluster through a fault and checks every promise; returns the seconds it took."""
    began = time.monotonic()
    with Processes(folder) as processes:
        if case.mode == "all_reduce":
            _run_launched(case, folder, processes)
        else:
            _Cluster(case, folder, processes).run()
        processes.assert_no_orphan()
    _check_result(case, folder / "train")
    secs = time.monotonic() - began
    assert secs < TIME_BOUND_SECS, f"{case} took {secs:.0f} s"
    return secs


def _check_result(case, train_dir):
    """The newest checkpoint loads, is of the last step, and has the weights."""
    path = tf.train.latest_checkpoint(str(train_dir))
    values = tf.train.load_checkpoint(path)
    assert values.get_tensor("global_step") == STEPS, path
    found = np.append(values.get_tensor("weights"), values.get_tensor("bias"))
    assert np.isfinite(found).all()
    if case.mode in ("synchronous", "all_reduce"):
        np.testing.assert_allclose(found, undisturbed(STEPS, WORKERS), atol=1e-6)


def _step_line(step):
    """Matches the lines of `step` and later steps, of the first session of a process."""
    return rf"^(?:worker \d\| )?step ({'|'.join(str(i) for i in range(step, STEPS + 1))})/"


def _training_flags(case, folder):
    return [
        f"--mode={case.mode}",
        f"--train_dir={folder / 'train'}",
        f"--max_number_of_steps={STEPS}",
        f"--save_interval_steps={SAVE_STEPS}",
    ]


def _hit(case, pid):
    os.kill(pid, case.signal)
    if case.signal == signal.SIGSTOP:
        time.sleep(case.stop_secs)  # the fault itself
        os.kill(pid, signal.SIGCONT)


def _run_launched(case, folder, processes):
    """All-reduce: everyone stops, and the launcher starts all again."""
    flags = [f"--num_workers={case.num_workers}", "--max_restarts=1", f"--log_dir={folder}"]
    launch = processes.start(
        "launch", [*LAUNCH, *flags, "--", *PROGRAM, *_training_flags(case, folder)], guarded=False
    )
    launch.wait_for_line(_step_line(case.step))
    _hit(case, int(launch.wait_for_line(rf"^{case.victim}\| process (\d+)$").group(1)))
    assert launch.wait() == 0, launch.log
    if case.signal != signal.SIGSTOP:
        assert "starting all tasks again" in launch.log


class _Cluster:
    """The processes of a case with parameter servers."""

    def __init__(self, case, folder, processes):
        self._case, self._folder, self._processes = case, folder, processes
        self._gate = folder / "gate"
        self._running = {}
        self._ports = ReservedPorts(case.num_workers + case.num_ps)

    def run(self):
        """Starts all, hits one, starts it again, and sees all of them end with 0."""
        case = self._case
        with self._ports:
            for name in self._names():
                self._start(name)
            workers = [name for name in self._names() if name.startswith("worker")]
            for name in workers:
                self._running[name].wait_for_line(_step_line(1))
            watched = case.victim if case.victim in workers else "worker 0"
            self._running[watched].wait_for_line(_step_line(case.step))
            self._hit_and_restart()
            self._gate.touch()
            for name in self._names():
                assert self._running[name].wait() == 0, (name, self._running[name].log)
            self._check_logs()

    def _hit_and_restart(self):
        case = self._case
        victim = self._running[case.victim]
        _hit(case, victim.pid)
        if case.signal == signal.SIGSTOP:
            return
        assert victim.wait() == 128 + case.signal, victim.log
        if case.mode == "backup":  # nothing stops
            self._others(r"made its last step|waits|step 5\d/")
        restarted = self._start(case.victim)
        if case.victim == "worker 0":
            restarted.wait_for_line(r"the parameter servers are at step \d+: going on there")
        if case.victim.startswith("worker"):
            restarted.wait_for_line(_step_line(case.step))  # it has rejoined

    def _others(self, pattern):
        others = [n for n in self._names() if n.startswith("worker") and n != self._case.victim]
        self._running[others[0]].wait_for_line(pattern)

    def _check_logs(self):
        """What is lost is at most one save interval, and nothing where no ps was lost."""
        logs = "".join(process.log for process in self._running.values())
        lost = [int(n) for n in re.findall(r"(\d+) steps are lost", logs)]
        if self._case.victim.startswith("ps") and self._case.signal != signal.SIGSTOP:
            assert "going on from step" in self._running["worker 0"].log
            # Asynchronous steps that a worker has not reported yet come on top.
            assert max(lost, default=0) <= SAVE_STEPS + WORKERS, lost
        else:
            assert not lost, logs

    def _names(self):
        case = self._case
        workers = [f"worker {i}" for i in range(case.num_workers)]
        return [*(f"ps {i}" for i in range(case.num_ps)), *workers]

    def _start(self, name):
        case = self._case
        job, task = name.split()
        addresses = self._ports.addresses
        # The gate keeps the others from the end until the victim, which goes on, is back.
        holds = case.mode in ("asynchronous", "backup") and name not in self._running
        flags = [
            f"--worker_hosts={','.join(addresses[: case.num_workers])}",
            f"--ps_hosts={','.join(addresses[case.num_workers :])}",
            f"--job_name={job}",
            f"--task_id={task}",
            f"--hold_at={STEPS - 8 if holds else 0}",
            f"--gate={self._gate}",
        ]
        arguments = [*_training_flags(case, self._folder), *flags]
        self._running[name] = self._processes.fork(name.replace(" ", "-"), MODULE, arguments)
        return self._running[name]
