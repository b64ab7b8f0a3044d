"""What clusters promise about time: who joins late, who waits for whom, and the end of a run.

Bounds are twice those of the documentation or more: the machine does other things, too.
"""

import re
import signal
import sys
import time

import pytest

from model_deploy.launch import ReservedPorts
from tests.processes.faults import cluster_flags, training_flags
from tests.processes.harness import ROOT, Processes

STEPS = 60
JOIN_SECS, END_SECS = 6.0, 10.0
SCRIPT = [sys.executable, str(ROOT / "train_image_classifier.py")]
OPTIONS = ["--num_clones=1", "--batch_size=8", "--log_every_n_steps=1"]
PROGRAM = [sys.executable, "-m", "tests.processes.training"]
TASKS = {"ps": ("ps", 0), "chief": ("worker", 0), "worker": ("worker", 1)}


class _Cluster:
    """A parameter server and two workers, to be started one by one."""

    def __init__(self, processes, ports, program, options):
        self._processes = processes
        self.addresses = ports.addresses
        hosts = [f"--worker_hosts={','.join(ports.addresses[1:])}"]
        self._command = [*program, *options, *hosts, f"--ps_hosts={ports.addresses[0]}"]

    def start(self, name, *options):
        job, task = TASKS[name]
        own = [f"--job_name={job}", f"--task_id={task}", *options]
        return self._processes.start(name, [*self._command, *own])


def _seen(process, pattern):
    """When a line was there."""
    process.wait_for_line(pattern)
    return time.monotonic()


@pytest.mark.slow
def test_late_worker(tmp_path):
    """A worker that comes when the chief is at work makes its first step soon.

    Its start-up is over with the line about the checkpoints, the last before the session.
    """
    with ReservedPorts(3) as ports, Processes(tmp_path) as processes:
        cluster = _Cluster(processes, ports, SCRIPT, [*OPTIONS, f"--train_dir={tmp_path}/train"])
        _, chief = cluster.start("ps"), cluster.start("chief")
        chief.wait_for_line(r"^step \d+/.*local step")
        late = cluster.start("worker")
        started = _seen(late, "checkpoints in")
        assert _seen(late, r"^step \d+/.*local step 1 ") - started < JOIN_SECS


@pytest.mark.slow
def test_end_of_a_run(tmp_path):
    """All processes of a training end with 0 soon after the last step, evaluation included."""
    options = [*OPTIONS, f"--max_number_of_steps={STEPS}", f"--train_dir={tmp_path}/train"]
    options += [f"--eval_every_n_steps={STEPS // 2}"]
    with ReservedPorts(3) as ports, Processes(tmp_path) as processes:
        cluster = _Cluster(processes, ports, SCRIPT, options)
        tasks = [cluster.start(name) for name in TASKS]
        last = _seen(tasks[-1], "worker 1 has made its last step")
        assert [task.wait() for task in tasks] == [0, 0, 0]
        assert time.monotonic() - last < END_SECS
        evaluated = [bool(re.search("^evaluation at step", task.log, re.M)) for task in tasks]
        assert evaluated == [False, True, False]  # by the chief alone


@pytest.mark.slow
def test_start_timeout(tmp_path):
    """A worker whose parameter server does not come ends, naming the task and its address."""
    options = ["--start_timeout=0.5", f"--train_dir={tmp_path}/train"]
    with ReservedPorts(3) as ports, Processes(tmp_path) as processes:
        cluster = _Cluster(processes, ports, PROGRAM, options)
        worker = cluster.start("worker")
        assert worker.wait() == 1
        assert re.search(
            rf"error: start_timeout must be .* got 0\.5 s without ps 0 at {ports.addresses[0]}",
            worker.log,
        )


@pytest.mark.slow
def test_no_worker_waits_for_another(tmp_path):
    """Asynchronous: while one worker is held before a step the other makes all but the last."""
    gate = tmp_path / "gate"
    options = [f"--max_number_of_steps={STEPS}", f"--train_dir={tmp_path}/train"]
    with ReservedPorts(3) as ports, Processes(tmp_path) as processes:
        cluster = _Cluster(processes, ports, PROGRAM, options)
        tasks = [cluster.start("ps"), cluster.start("chief")]
        held = cluster.start("worker", "--hold_at=1", f"--gate={gate}")
        tasks[1].wait_for_line(rf"^step {STEPS - 1}/{STEPS} ")
        assert "local step" not in held.log
        gate.touch()
        assert [task.wait() for task in (*tasks, held)] == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "others_wait"),
    [
        pytest.param(0, True, id="the chief, which nobody has asked for anything"),
        pytest.param(1, True, id="another one, before the start"),
        pytest.param(1, False, id="another one, in the start"),
    ],
)
def test_all_reduce_without_one_at_the_start(victim, others_wait, tmp_path):
    """A worker is killed while the others start: they end soon, and say who it was."""
    gates = [tmp_path / "hit", tmp_path / "others"]
    with ReservedPorts(3) as ports, Processes(tmp_path) as processes:
        workers = []
        for i in range(3):
            gate = f"--start_gate={gates[i != victim]}"
            flags = [*training_flags(tmp_path, "all_reduce"), gate]
            flags += cluster_flags(f"worker {i}", ports.addresses, [])
            workers.append(processes.start(f"worker-{i}", [*PROGRAM, *flags]))
        if not others_wait:
            gates[1].touch()
        for worker in workers:
            worker.wait_for_line("^waiting for the gate")
        if not others_wait:
            time.sleep(1.0)  # for them to come to where they wait for the victim
        lost = workers.pop(victim)
        lost.signal(signal.SIGKILL)
        assert lost.wait() == 128 + signal.SIGKILL
        began = time.monotonic()
        gates[1].touch()
        for worker in workers:
            assert worker.wait() == 1, worker.log
            assert f"error: lost the connection to worker {victim}" in worker.log
        pause = time.monotonic() - began
        print(f"ended after {pause:.2f} s")
        assert pause < 2 * END_SECS
