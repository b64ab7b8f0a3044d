"""Steps that TensorFlow has lost: synchronous runs on parameter servers go on, exactly."""

import os
import re
import signal
import time

import pytest

from tests.processes.faults import PROGRAM, STEPS, WORKERS, check_result, training_flags
from tests.processes.harness import Processes
from tests.processes.test_elastic import WAYS, ElasticLaunch

pytestmark = [pytest.mark.one_mode, pytest.mark.slow]

# The watch looks each 5 s.
TIMEOUT = "--stall_timeout=6"
CUT = r"^worker \d\| no step for \d+ s, and all tasks answer: cutting [1-9]\d* connections"


@pytest.mark.parametrize("mode", ["synchronous", "rotated"])
def test_lost_step(mode, tmp_path):
    """Whoever loses a step, after `stall_timeout` all go on anew, and the weights are the same.

    The chief loses one, and after that another worker.
    """
    flags = ["--lost_tasks=worker 0, worker 1", f"--stop_mark={tmp_path / 'lost'}", TIMEOUT]
    with Processes(tmp_path) as processes:
        program = [*PROGRAM, *training_flags(tmp_path, mode), *flags]
        launch = processes.launch([f"--num_workers={WORKERS}", "--num_ps=2"], program)
        assert launch.wait() == 0, launch.log
    assert len(re.findall(CUT, launch.log, re.MULTILINE)) >= 2
    assert len(re.findall(r"and all tasks answer: .*; going on anew", launch.log)) >= 2
    assert {path.name for path in tmp_path.glob("lost-*")} == {"lost-0", "lost-1"}
    check_result(tmp_path / "train", is_exact=True)


@pytest.mark.parametrize("stopped", ["worker 0", "worker 1"])
def test_stopped_worker(stopped, tmp_path):
    """One that only stands still for longer than that, and answers, costs the run no step."""
    with Processes(tmp_path) as processes:
        program = [*PROGRAM, *training_flags(tmp_path, "synchronous"), TIMEOUT, "--step_secs=0.1"]
        launch = processes.launch([f"--num_workers={WORKERS}", "--num_ps=2"], program)
        pid = int(launch.wait_for_line(rf"^{stopped}\| process (\d+)$").group(1))
        launch.wait_for_line(rf"^{stopped}\| step 2\d/")
        os.kill(pid, signal.SIGSTOP)
        launch.wait_for_line(CUT)
        os.kill(pid, signal.SIGCONT)
        assert launch.wait() == 0, launch.log
    # It may be in the update, and does not take the time in which it was stopped for a lost step.
    assert not re.search(rf"^{stopped}\| .*: cutting", launch.log, re.MULTILINE), launch.log
    check_result(tmp_path / "train", is_exact=True)


def test_lost_step_of_an_elastic_run(tmp_path):
    """Whoever loses a step, a worker asks for another world; all go on in it, and none is lost.

    The chief loses one, and after that another worker.
    """
    lost = ["--losers=0, 1", f"--gate={tmp_path / 'lost'}"]
    # The others wait for a chief whose update is lost for 20 times its longest step.
    more = [*lost, TIMEOUT, "--start_timeout=110"]
    with Processes(tmp_path) as processes:
        launch = ElasticLaunch(tmp_path, processes, 3, 60, way=WAYS["2 ps"], more=more)
        for world in (2, 3):
            launch.process.wait_for_line(f"world {world}: worker 0, worker 1, worker 2")
        launch.end()
    asked = r"worker \d asks for another world: the step after"
    assert len(re.findall(CUT, launch.process.log, re.MULTILINE)) >= 2
    assert len(re.findall(asked, launch.process.log)) >= 2
    processes.assert_no_orphan()


def test_killed_while_it_waits(tmp_path):
    """A worker that is killed when it has handed in its gradients, twice, counts once all the same.

    Who holds makes one step when it is started: the killed one hands in, and waits for the chief.
    """
    flags = [f"--hold_at={STEPS // 2}", f"--gate={tmp_path / 'gate'}"]
    with Processes(tmp_path) as processes:
        program = [*PROGRAM, *training_flags(tmp_path, "synchronous"), *flags]
        roles = [f"--num_workers={WORKERS}", "--num_ps=2", "--max_restarts=2"]
        launch = processes.launch(roles, program)
        launch.wait_for_line(rf"^worker 1\| step {STEPS // 2 - 1}/")
        for left in (1, 0):
            launch.signal_task("worker 1")
            launch.wait_for_line(rf"starting worker 1 again, {left} restarts left")
            time.sleep(6)  # until it has handed in, on a machine that is not busy
        (tmp_path / "gate").touch()
        assert launch.wait() == 0, launch.log
    check_result(tmp_path / "train", is_exact=True)
