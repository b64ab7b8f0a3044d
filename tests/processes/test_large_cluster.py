"""A cluster of as many processes as few machines have cores for."""

import re
import sys

import pytest
import tensorflow.compat.v1 as tf

from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode

NUM_WORKERS, NUM_PS, STEPS = 16, 8, 200
# A machine of 2 cores needs half a minute, and this one may do other things, too.
MOST_SECS = 600.0
# Of gradients that are 16 steps old larger steps would diverge.
PROGRAM = [
    *(sys.executable, "-m", "tests.processes.training", "--mode=asynchronous"),
    *("--learning_rate=0.0005", f"--max_number_of_steps={STEPS}", "--hold_at=1"),
]


@pytest.mark.slow
def test_24_processes(tmp_path):
    """All end well, at the last step and not after it, and nothing is left of them."""
    gate = tmp_path / "gate"
    flags = [f"--num_workers={NUM_WORKERS}", f"--num_ps={NUM_PS}"]
    program = [*PROGRAM, f"--train_dir={tmp_path}/run", f"--gate={gate}"]
    with Processes(tmp_path) as processes:
        launch = processes.launch(flags, program)
        for worker in range(NUM_WORKERS):
            launch.wait_for_line(rf"^worker {worker}\| step \d+/", MOST_SECS)
        gate.touch()
        assert launch.wait(MOST_SECS) == 0, launch.log
        processes.assert_no_orphan()
    log = launch.log
    tasks = {f"worker {i}" for i in range(NUM_WORKERS)} | {f"ps {i}" for i in range(NUM_PS)}
    assert set(re.findall(r"^(.+)\| process \d+$", log, re.MULTILINE)) == tasks
    # It would say who has failed, and who was ended after the chief.
    assert re.findall(r"^launch\| (.*)", log, re.MULTILINE) == [f"logs in {tmp_path}"]
    ends = re.findall(
        r"^(worker \d+)\| \1 has made its last step, at step (\d+)", log, re.MULTILINE
    )
    assert {name for name, _ in ends} == tasks - {"worker 0"} - {f"ps {i}" for i in range(NUM_PS)}
    assert all(STEPS - NUM_WORKERS < int(step) <= STEPS for _, step in ends)
    newest = tf.train.load_checkpoint(str(tmp_path / "run"))
    assert newest.get_tensor("global_step") == STEPS
