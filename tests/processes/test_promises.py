"""What clusters promise about time: who joins late, who waits for whom, and the end of a run.

Bounds are far above what an idle machine needs: the machine does other things, too.
"""

import re
import signal
import sys
import time

import pytest

from model_deploy.launch import ReservedPorts
from tests.processes.faults import END_SECS, PROGRAM, STEPS, WORKERS, check_result, training_flags
from tests.processes.harness import Processes, Tasks

pytestmark = pytest.mark.one_mode

# TensorFlow's own wait for a session looks again after 30 s; here it takes about 2 s when idle.
JOIN_SECS = 25.0
CLASSIFIER = [
    *(sys.executable, "-m", "train_image_classifier", "--num_clones=1", "--batch_size=8"),
    *("--model_name=mnist_mlp", "--log_every_n_steps=1"),
]


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
        program = [*CLASSIFIER, f"--train_dir={tmp_path}/train"]
        tasks = Tasks(processes, ports.addresses, 1, program)
        tasks.start("ps 0")
        tasks.start("worker 0").wait_for_line(r"^step \d+/.*local step")
        late = tasks.start("worker 1")
        started = _seen(late, "checkpoints in")
        assert _seen(late, r"^step \d+/.*local step 1 ") - started < JOIN_SECS


@pytest.mark.slow
def test_end_of_a_run(tmp_path):
    """All processes of a training end with 0 soon after the last step, evaluation included."""
    with ReservedPorts(3) as ports, Processes(tmp_path) as processes:
        program = [*CLASSIFIER, f"--train_dir={tmp_path}/train", f"--max_number_of_steps={STEPS}"]
        program.append(f"--eval_every_n_steps={STEPS // 2}")
        tasks = Tasks(processes, ports.addresses, 1, program)
        for name in ("ps 0", "worker 0", "worker 1"):
            tasks.start(name)
        last = _seen(tasks["worker 1"], "worker 1 has made its last step")
        assert tasks.wait() == [0, 0, 0]
        assert time.monotonic() - last < END_SECS
    evaluated = [name for name in tasks if re.search("^evaluation at", tasks[name].log, re.M)]
    assert evaluated == ["worker 0"]  # the chief alone


@pytest.mark.slow
def test_no_worker_waits_for_another(tmp_path):
    """Asynchronous: while one worker is held before its second step the other makes the rest."""
    gate = tmp_path / "gate"
    with ReservedPorts(3) as ports, Processes(tmp_path) as processes:
        program = [*PROGRAM, *training_flags(tmp_path, "asynchronous")]
        tasks = Tasks(processes, ports.addresses, 1, program)
        tasks.start("ps 0")
        tasks.start("worker 0")
        held = tasks.start("worker 1", "--hold_at=1", f"--gate={gate}")
        tasks["worker 0"].wait_for_line(rf"^step {STEPS - 1}/{STEPS} ")
        assert "local step 2" not in held.log
        gate.touch()
        assert tasks.wait() == [0, 0, 0]


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
        program = [*PROGRAM, *training_flags(tmp_path, "all_reduce")]
        tasks = Tasks(processes, ports.addresses, 0, program)
        for i in range(3):
            tasks.start(f"worker {i}", f"--start_gate={gates[i != victim]}")
        if not others_wait:
            gates[1].touch()
        for worker in tasks.values():
            worker.wait_for_line("^waiting for the gate")
        lost = tasks.pop(f"worker {victim}")
        if not others_wait:  # they come to where they wait for the victim
            processes.wait_until_idle(*tasks.values())
        lost.signal(signal.SIGKILL)
        assert lost.wait() == 128 + signal.SIGKILL
        began = time.monotonic()
        gates[1].touch()
        assert tasks.wait() == [1, 1]
        pause = time.monotonic() - began
        for worker in tasks.values():
            assert f"error: lost the connection to worker {victim}" in worker.log
        print(f"ended after {pause:.2f} s")
        assert pause < END_SECS


@pytest.mark.slow
@pytest.mark.parametrize("refused", ["worker 0", "worker 1"])
def test_refused_step_of_all_reduce(refused, tmp_path):
    """All are started again without a restart left to take, and the weights are the same."""
    flags = [f"--refused_task={refused}", f"--stop_mark={tmp_path / 'refused'}"]
    with Processes(tmp_path) as processes:
        program = [*PROGRAM, *training_flags(tmp_path, "all_reduce"), *flags]
        launch = processes.launch([f"--num_workers={WORKERS}", "--num_ps=0"], program)
        launch.wait_for_line(f"{refused} failed with exit status 75: starting all .* not counted")
        assert launch.wait() == 0, launch.log
    assert f"{refused}| error: TensorFlow has refused the step after 24" in launch.log
    check_result(tmp_path / "train", is_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["worker 0", "worker 1"])
def test_wrong_step_of_all_reduce(wrong, tmp_path):
    """An op that fails in one worker ends all, with its error first: no step was refused."""
    with Processes(tmp_path) as processes:
        program = [*PROGRAM, *training_flags(tmp_path, "all_reduce"), f"--wrong_task={wrong}"]
        launch = processes.launch([f"--num_workers={WORKERS}", "--num_ps=0"], program)
        assert launch.wait() == 1, launch.log
    log = launch.log
    assert f"{wrong}| error: assertion failed" in log
    assert f"launch| {wrong} failed with exit status 1" in log
    assert "refused" not in log
    assert "starting all tasks again" not in log
