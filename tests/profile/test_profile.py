"""Profiles of steps: what is recorded, where time goes, and what is written and printed."""

import json
import re
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, train
from model_deploy.profile import __main__ as command
from model_deploy.profile import kinds, parse_steps, summary, traces
from model_deploy.profile.traces import OpTime
from tests import clusters
from tests.training.halving import run_halving, square

pytestmark = pytest.mark.one_mode


def _op(type_, begin, usec, step=1, device="d"):
    return OpTime(step, device, f"name_{begin}", type_, begin, usec)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """The folder of a run of 8 steps of which 3 to 5 were profiled."""
    folder = tmp_path_factory.mktemp("profiled")
    # The loss is that without a profile: (2^-7)^2 / 2.
    assert run_halving(folder, 8, profile_steps="3,5").total_loss == 2.0**-15
    return folder


def test_steps_are_recorded(profiled):
    """Exactly the steps that were asked for are in the trace, each with its update."""
    trace = json.loads((profiled / "profile/steps_3_5.trace.json").read_text())
    events = [each for each in trace["traceEvents"] if each["ph"] == "X"]
    assert {each["args"]["step"] for each in events} == {3, 4, 5}
    updates = [each["args"]["step"] for each in events if each["cat"] == "update"]
    assert set(updates) == {3, 4, 5}
    assert all(each["dur"] >= 1 for each in events)
    assert list(profiled.glob("plugins/profile/*/*.xplane.pb"))


def test_a_run_that_ends_earlier_writes_what_it_has(tmp_path):
    """Of steps 3 to 5 a run of 4 steps has two; the run that goes on has the third."""
    run_halving(tmp_path, 4, profile_steps="3,5")
    assert (tmp_path / "profile/steps_3_4.trace.json").is_file()
    run_halving(tmp_path, 6, profile_steps="3,5")
    assert (tmp_path / "profile/steps_5_5.trace.json").is_file()
    run_halving(tmp_path, 8, profile_steps="3,5")
    assert len(list(tmp_path.glob("profile/*.json"))) == 2


@pytest.mark.slow
def test_parameter_servers_are_in_the_trace(tmp_path):
    """Updates are on the parameter server, computation on the worker, and values move."""
    [target] = clusters.workers(1)
    config = DeploymentConfig(num_clones=1, num_ps_tasks=1, clone_on_cpu=True)
    model = deploy(config, square, optimizer=tf.train.GradientDescentOptimizer(0.5))
    train(model, tmp_path, max_steps=6, master=target, profile_steps="3,5")
    ops = traces.read_trace(traces.newest_trace(tmp_path))
    times = {name.split("/")[1]: msec for name, msec in summary.device_times(ops).items()}
    assert times["job:ps"]["update"] > 0
    assert times["job:worker"]["computation"] > 0
    assert {op.device.split("/")[1] for op in ops if op.kind == "transfer"} >= {"job:worker"}


def test_rejects(tmp_path):
    """What is no pair of steps in order is an error that shows it. Steps of asynchronous clones
    overlap, so none could be told from the others.
    """
    for value in ("5", "5,3", "0,3", "a,b", "1,2,3", "-1,3", ""):
        with pytest.raises(ValueError, match=f"profile_steps must be .*, got {value!r}$"):
            parse_steps(value)
    config = DeploymentConfig(num_clones=2, clone_on_cpu=True)
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    model = deploy(config, square, optimizer=optimizer, asynchronous=True)
    with pytest.raises(ValueError, match="profile_steps must be None with asynchronous clones"):
        train(model, tmp_path, max_steps=6, profile_steps="3,5")


def test_kinds():
    """What an op is there for follows from its type."""
    types = {
        "update": ["ResourceApplyMomentum", "AssignAddVariableOp"],
        "computation": ["ReadVariableOp", "_MklNativeFusedConv2D"],
        "transfer": ["_HostRecv", "RecvTensor", "CollectiveReduceV2"],
        "input": ["IteratorGetNext"],
    }
    for kind, its in types.items():
        assert {kinds.kind_of(type_) for type_ in its} == {kind}


def test_each_moment_counts_once():
    """Of 100 us: 10 to 40 compute, 30 to 60 transfer, 80 to 100 update; the rest waits. An op is in
    the first lane that is free when it begins.
    """
    ops = [
        *(_op("MatMul", 0, 1, device="other"), _op("MatMul", 99, 1, device="other")),
        *(_op("MatMul", 10, 30), _op("Relu", 15, 10), _op("_Recv", 30, 30)),
        _op("ResourceApplyMomentum", 80, 20),
    ]
    assert summary.device_times(ops)["d"] == pytest.approx(
        {"computation": 0.03, "transfer": 0.02, "update": 0.02, "input": 0, "waiting": 0.03}
    )
    ops = [_op("A", 0, 10), _op("B", 5, 10), _op("C", 10, 3), _op("D", 11, 9)]
    assert [lane for _, lane in traces.in_lanes(ops)] == [0, 1, 0, 2]


def test_means_are_over_steps():
    """Steps of 10 and 30 us are 0.02 ms in the mean; MatMul takes all, in two ops each."""
    ops = [_op("MatMul", 0, 5), _op("MatMul", 5, 5)]
    ops += [_op("MatMul", 100, 15, step=2), _op("MatMul", 115, 15, step=2)]
    [found] = summary.type_times(ops)
    assert found == ("MatMul", "computation", pytest.approx(0.02), 2)


def test_command_prints_and_draws(profiled, capsys):
    """The table has a row for the device whose shares add up to the step; the picture is a PNG."""
    command.main([str(profiled)])
    text = capsys.readouterr().out
    assert text.startswith("steps 3 to 5, ")
    [row] = [line for line in text.splitlines() if "CPU:0" in line]
    shares = [int(each) for each in re.findall(r"\(\s*(\d+)%\)", row)]
    assert len(shares) == 5
    assert abs(sum(shares) - 100) <= 3  # each is rounded
    assert (profiled / "profile/steps_3_5.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "train_dir must be of a run with --profile_steps"),
        ("{}", "a trace must be one of --profile_steps"),
        ("no json", "a trace must be one of --profile_steps"),
        ('{"traceEvents": []}', "a trace must have ops"),
    ],
)
def test_command_rejects(content, message, tmp_path, capsys):
    """A folder without a trace, and a file that is none, end the command with a line."""
    if content is not None:
        (tmp_path / "profile").mkdir()
        (tmp_path / "profile/steps_1_2.trace.json").write_text(content)
    with pytest.raises(SystemExit):
        command.main([str(tmp_path)])
    assert message in capsys.readouterr().err


def test_command_needs_no_tensorflow(tmp_path):
    """Tables and picture come without waiting for TensorFlow."""
    traces.write_trace(str(tmp_path), [_op("MatMul", 0, 5)])
    program = (
        "import sys; from model_deploy.profile import __main__ as m; m.main(sys.argv[1:]); "
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, capture_output=True)
