"""The launcher starts an evaluator beside the workers, and its loss ends nothing."""

import json

import pytest

from model_deploy.launch import (
    ElasticLauncher,
    ElasticServersLauncher,
    JoiningLauncher,
    Launcher,
)
from tests.launch.programs import launch

pytestmark = pytest.mark.one_mode

TASK = 'evaluates = task.get("type") == "evaluator"\n'


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Launcher, {"num_workers": 2, "num_ps": 1}),
        (JoiningLauncher, {"max_workers": 2, "num_ps": 1}),
        (ElasticLauncher, {"max_workers": 2}),
        (ElasticServersLauncher, {"max_workers": 2, "num_ps": 1, "elastic": True}),
    ],
)
def test_each_launch_has_one(kind, options, tmp_path):
    """It is a task outside of the cluster, with no GPU, and no worker of an elastic run."""
    source = """
if not evaluates:
    wait_for("told")
    sys.exit(0)
told = {name: os.environ.get(name) for name in ("TF_CONFIG", "CUDA_VISIBLE_DEVICES")}
assert "MODEL_DEPLOY_WORLD" not in os.environ
open("telling", "w").write(json.dumps(told))
os.rename("telling", "told")
"""
    status, _ = launch(kind, tmp_path, TASK + source, evaluator=True, **options)
    told = json.loads((tmp_path / "told").read_text())
    config = json.loads(told["TF_CONFIG"])
    addresses = {job: len(hosts) for job, hosts in config["cluster"].items()}
    assert status == 0
    assert config["task"] == {"type": "evaluator", "index": 0}
    assert addresses == {"chief": 1, "worker": 1, **({"ps": 1} if "num_ps" in options else {})}
    assert told["CUDA_VISIBLE_DEVICES"] == "-1"
    assert (tmp_path / "evaluator.log").read_text().startswith("process ")


def test_it_is_lost(tmp_path):
    """It is started again while a restart is left; then the run goes on without it."""
    source = """
if evaluates:
    print("no checkpoint")
    if first_time("first"):
        sys.exit(1)
    first_time("second")
    sys.exit(3)
wait_for("second")
"""
    status, lines = launch(
        Launcher, tmp_path, TASK + source, num_workers=2, evaluator=True, max_restarts=1
    )
    assert status == 0
    assert [line for line in lines if "process" not in line] == [
        "evaluator failed with exit status 1: starting it again, 0 restarts left",
        "evaluator failed with exit status 3; its last lines:",
        "    no checkpoint",
        f"the whole log is {tmp_path / 'evaluator.log'}",
        "going on without the evaluator",
    ]


def test_all_others_are_started_again(tmp_path):
    """Where a crash starts all again, the chief too, the evaluator stays as it is."""
    source = """
if evaluates:
    assert first_time("evaluator")
    wait_for("trained")
elif task["type"] == "chief":
    wait_for("evaluator")
    if first_time("once"):
        os.kill(os.getpid(), signal.SIGKILL)
    open("trained", "w").close()
else:
    wait_for("trained")
"""
    status, lines = launch(
        Launcher, tmp_path, TASK + source, num_workers=2, evaluator=True, max_restarts=1
    )
    assert status == 0
    assert lines == ["worker 0 was ended by SIGKILL: starting all tasks again, 0 restarts left"]


@pytest.mark.parametrize("signalled", [False, True])
def test_it_outlives_the_workers(signalled, tmp_path):
    """It has a while to end by itself, but not for ever, and a signal ends it at once."""
    source = f"""
if not evaluates:
    note_pid("worker")
    wait_for("waits")
    sys.exit(0)
def parent_of(pid):
    return int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1])
first_time("waits")
if {signalled}:
    wait_for_end_of("worker")
    os.kill(parent_of(os.getppid()), signal.SIGTERM)
signal.pause()
"""
    grace = 60.0 if signalled else 0.1
    status, lines = launch(
        Launcher, tmp_path, TASK + source, evaluator=True, evaluator_grace_secs=grace
    )
    assert status == (143 if signalled else 0)
    ended = "the workers have ended 0.1 s ago: ending the evaluator"
    assert lines == ["SIGTERM: ending all tasks" if signalled else ended]


def test_workers_fail(tmp_path):
    """A run that fails ends its evaluator, too, and has the status of the task that failed."""
    source = """
if evaluates:
    first_time("there")
    signal.pause()
wait_for("there")
sys.exit(4)
"""
    status, lines = launch(Launcher, tmp_path, TASK + source, evaluator=True)
    assert status == 4
    assert lines[0] == "worker 0 failed with exit status 4; its last lines:"
