"""Workers of parameter servers that come and go, with programs that do nothing else."""

import os
import signal

import pytest

from model_deploy.launch import JoiningLauncher
from tests.launch.programs import launch

pytestmark = pytest.mark.one_mode

# Each says that it is there; the chief lets the parameter server go when it ends.
TASK = """
kind, index = task["type"], task["index"]
me = f"{kind}-{index}"
open(me, "w").close()
cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
assert [len(cluster[job]) for job in ("chief", "worker", "ps")] == [1, 2, 1]
def ask_for_one():
    os.kill(int(open("launcher").read()), signal.SIGUSR1)
"""


def _launch(folder, source, **options):
    """Exit status and the launcher's lines; tasks that wait end with a file `end`."""
    (folder / "launcher").write_text(str(os.getpid()))
    options = {"num_ps": 1, "max_workers": 3, "grace_secs": 5.0, **options}
    return launch(JoiningLauncher, folder, TASK + source, **options)


def test_workers_join(tmp_path):
    """It starts with some, and one more for each SIGUSR1, up to all that have an address."""
    source = """
if kind == "chief":
    assert not os.path.exists("worker-0")
    ask_for_one()
    wait_for("worker-0")
    ask_for_one()
    wait_for("worker-1")
    ask_for_one()
    time.sleep(0.5)
    open("end", "w").close()
wait_for("end")
"""
    status, lines = _launch(tmp_path, source)
    assert status == 0
    assert lines == [
        "starting worker 1",
        "starting worker 2",
        "no worker is started: all 3 are there",
    ]


def test_workers_leave_and_come_back(tmp_path):
    """A worker that is lost is left out; its place is the first that is filled again."""
    source = """
if kind == "chief":
    wait_for("lost")
    time.sleep(0.5)
    ask_for_one()
    wait_for("back")
    open("end", "w").close()
if me == "worker-0":
    if first_time("lost"):
        os.kill(os.getpid(), signal.SIGKILL)
    open("back", "w").close()
wait_for("end")
"""
    status, lines = _launch(tmp_path, source, num_workers=3)
    assert status == 0
    assert lines == ["worker 1 was ended by SIGKILL: going on with 2 workers", "starting worker 1"]


@pytest.mark.parametrize(
    ("who", "options", "line"),
    [
        ("worker-0", {"min_workers": 2}, "1 workers are fewer than min_workers=2"),
        ("chief-0", {}, "worker 0 failed with exit status 7; its last lines:"),
        ("ps-0", {}, "ps 0 failed with exit status 7; its last lines:"),
    ],
)
def test_who_cannot_be_left_out(tmp_path, who, options, line):
    """With fewer than `min_workers`, without the chief or a ps, the launch fails as that task."""
    source = f"""
if me == "{who}":
    wait_for("worker-0")
    wait_for("chief-0")
    sys.exit(7)
wait_for("end")
"""
    status, lines = _launch(tmp_path, source, num_workers=2, **options)
    assert status == 7
    assert line in lines


def test_restarts_come_first(tmp_path):
    """With a restart left a lost worker is started again by itself."""
    source = """
if me == "worker-0" and first_time("lost"):
    sys.exit(3)
if me == "worker-0":
    open("end", "w").close()
wait_for("end")
"""
    status, lines = _launch(tmp_path, source, num_workers=2, max_restarts=1)
    assert status == 0
    assert lines == ["worker 1 failed with exit status 3: starting worker 1 again, 0 restarts left"]


def test_nobody_joins_a_run_that_has_ended(tmp_path):
    """After the chief's end nobody is started."""
    source = """
if me == "worker-0":
    time.sleep(0.5)
    ask_for_one()
    time.sleep(0.5)
"""
    status, lines = _launch(tmp_path, source, num_workers=2)
    assert status == 0
    assert lines == ["no worker is started: the chief has ended"]


def test_the_signal_is_one_of_its_own():
    """SIGUSR1 is handled while it runs, and SIGTERM as for every launch."""
    assert signal.SIGUSR1 in JoiningLauncher.signals
    assert signal.SIGTERM in JoiningLauncher.signals
