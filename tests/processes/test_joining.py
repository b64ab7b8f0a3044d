"""Workers join and leave asynchronous parameter servers while others train."""

import re
import signal
import sys

import pytest
import tensorflow.compat.v1 as tf

from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode

STEPS = 1000


@pytest.mark.slow
def test_workers_join_and_leave(tmp_path):
    """Two join, one is killed and comes again; nobody is restarted, and the last step is exact."""
    gate = tmp_path / "gate"
    training = [
        *(sys.executable, "-m", "tests.processes.training", "--mode=asynchronous"),
        *(f"--train_dir={tmp_path / 'run'}", f"--max_number_of_steps={STEPS}"),
        *(f"--gate={gate}", "--step_secs=0.3"),
    ]
    flags = ["--num_ps=1", "--num_workers=1", "--max_workers=3"]
    with Processes(tmp_path) as processes:
        launch = processes.launch(flags, training)
        launch.wait_for_line(r"^worker 0\| step \d+/")
        for joining in ("worker 1", "worker 2"):
            launch.signal(signal.SIGUSR1)
            launch.wait_for_line(rf"^{joining}\| step \d+/")
        launch.signal_task("worker 1")
        launch.wait_for_line("^launch\\| worker 1 was ended by SIGKILL: going on with 2 workers$")
        launch.signal(signal.SIGUSR1)
        Processes.wait_until(
            lambda: len(re.findall(r"^worker 1\| process", launch.log, re.MULTILINE)) == 2,
            message=lambda: launch.log,
        )
        again = len(launch.log)
        Processes.wait_until(
            lambda: re.search(r"^worker 1\| step \d+/", launch.log[again:], re.MULTILINE),
            message=lambda: launch.log,
        )
        gate.touch()
        assert launch.wait() == 0, launch.log
        log = launch.log
    processes.assert_no_orphan()
    for other in ("ps 0", "worker 0", "worker 2"):
        assert len(re.findall(rf"^{other}\| process", log, re.MULTILINE)) == 1
    values = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path / "run")))
    assert values.get_tensor("global_step") == STEPS
