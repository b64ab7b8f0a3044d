"""Clusters of real processes at whose ports a stranger calls while they train."""

import re
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.launch import ReservedPorts
from tests.processes.faults import STEPS, WORKERS, training_flags
from tests.processes.harness import Processes, Tasks
from tests.processes.training import undisturbed
from tests.security.strangers import BYTES, FLOOD, KINDS, METHODS

pytestmark = pytest.mark.one_mode

PROGRAM = [sys.executable, "-m", "tests.processes.training"]
STRANGER = [sys.executable, "-m", "tests.security.strangers"]
# What the client of each kind is answered.
ANSWERS = {
    "garbage": rf"^{len(BYTES)} times garbage$",
    # Never OK: a message that is none does nothing.
    "calls": rf"^{len(METHODS)} methods: (?!.*\bOK\b)",
    "flood": rf"^\d+ of {FLOOD} connections$",
    "others": r"^unknown job, wrong task: (?!.*\d)",
    "look": r"^a session of a stranger has computed 2$",
}


def _disturb(processes, addresses):
    """Lets strangers of all kinds call at all ports at once; checks what they are answered."""
    clients = {
        kind: processes.start(f"stranger-{kind}", [*STRANGER, kind, *addresses]) for kind in KINDS
    }
    for kind, client in clients.items():
        assert client.wait() == 0, client.log
        found = re.findall(r"^127\.0\.0\.1:\d+: (.*)$", client.log, re.MULTILINE)
        assert len(found) == len(addresses), client.log
        for answer in found:
            assert re.search(ANSWERS[kind], answer), client.log


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "num_ps"), [("synchronous", 2), ("all_reduce", 0)])
def test_a_run_goes_on_whoever_calls(mode, num_ps, tmp_path):
    """It ends at its last step, with the weights of a run that nobody has disturbed."""
    gate = tmp_path / "gate"
    with Processes(tmp_path) as processes, ReservedPorts(WORKERS + num_ps) as ports:
        # Some strangers call between steps, others in steps that wait for the second worker.
        flags = [*training_flags(tmp_path, mode), f"--gate={gate}"]
        tasks = Tasks(processes, ports.addresses, num_ps, [*PROGRAM, *flags])
        for i in range(num_ps):
            tasks.start(f"ps {i}")
        tasks.start("worker 0", "--step_secs=0.05")
        tasks.start("worker 1", f"--hold_at={STEPS // 2}")
        tasks["worker 1"].wait_for_line(r"^step 3/")
        _disturb(processes, ports.addresses)
        gate.touch()
        assert {*tasks.wait()} == {0}, {name: task.log for name, task in tasks.items()}
        processes.assert_no_orphan()
    values = tf.train.load_checkpoint(str(tmp_path / "train"))
    assert values.get_tensor("global_step") == STEPS
    found = np.append(values.get_tensor("weights"), values.get_tensor("bias"))
    np.testing.assert_allclose(found, undisturbed(STEPS, WORKERS), atol=1e-6)
