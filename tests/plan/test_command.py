"""`python -m model_deploy.plan`."""

import sys

import pytest

from model_deploy.plan import __main__ as command
from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode


def _run(capsys, *flags):
    code = command.run(flags)
    return code, capsys.readouterr()


def test_plan_of_a_network(capsys, tmp_path):
    """LeNet with ten classes: every way on two and four workers, the choice, the picture."""
    flags = "--model_name=lenet --num_classes=10 --batch_size=8 --workers=2,4 --ps=1,2 "
    flags += "--bandwidth=1Gbit --step_secs=0.05"
    code, said = _run(capsys, *flags.split(), f"--picture={tmp_path / 'rates.png'}")
    assert (code, said.err) == (0, "")
    # 5 x 5 x 32 + 32, 5 x 5 x 32 x 64 + 64, 3136 x 1024 + 1024, 1024 x 10 + 10 floats.
    assert said.out.startswith("lenet: 13.1 MB of gradients, 8 examples and 0.05 s of computation")
    assert said.out.count(" all-reduce") >= 4
    assert "4 workers: all-reduce, 16 bits (" in said.out
    assert (tmp_path / "rates.png").exists()


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--bandwidth=fast", "bandwidth must be such as 400Mbit or 10Gbit, got 'fast'"),
        ("--bandwidth=0Gbit", "bandwidth must be such as 400Mbit or 10Gbit, got '0Gbit'"),
        ("--workers=4,x", "workers must be whole numbers such as 4,16,64, got '4,x'"),
        ("--ps=0", "ps must be whole numbers such as 4,16,64, got '0'"),
        ("--step_secs=0", "step_secs must be more than 0, got 0.0"),
        ("--model_name=none", "model_name must be one of alexnet_v2, "),
    ],
)
def test_mistakes_are_one_line(capsys, flag, message):
    """A bad flag is named, with its rule and its value, and nothing else is said."""
    code, said = _run(capsys, flag)
    assert code in (1, 2)
    assert said.err.startswith("error: ")
    assert message in said.err
    assert said.err.count("\n") == 1


@pytest.mark.slow
def test_steps_are_measured(tmp_path):
    """As a program: without `--step_secs` a few steps are made here."""
    flags = ["--model_name=mnist_mlp", "--num_classes=10", "--workers=2", "--ps=1"]
    with Processes(tmp_path) as processes:
        process = processes.start("plan", [sys.executable, "-m", "model_deploy.plan", *flags])
        assert process.wait() == 0, process.log
        assert float(process.log.split(" examples and ")[1].split(" s of")[0]) > 0
