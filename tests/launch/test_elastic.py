"""The launcher of elastic runs keeps the file of the world as it should be."""

import json
import re
import signal

import pytest

from model_deploy.cluster import read_world
from model_deploy.launch import ElasticLauncher, LaunchOptions
from model_deploy.launch import __main__ as launch_command
from tests.launch.programs import WORKER, launch, program
from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode


def _launch(log_dir, source, **options):
    options = {"max_workers": 2, "grace_secs": 2.0, **options}
    source = f'assert "TF_CONFIG" not in os.environ\n{WORKER}{source}'
    return launch(ElasticLauncher, log_dir, source, **options)


def test_lost_worker(tmp_path):
    """A worker that is lost is taken out of the world, which has new addresses; others end well."""
    source = """
if number == "1":
    sys.exit(3)
first = world()["workers"]["0"]
wait_for_world("0")
assert world()["workers"]["0"] != first or world()["generation"] == 2
"""
    status, lines = _launch(tmp_path, source)
    assert status == 0
    assert lines == [
        "world 1: worker 0, worker 1",
        "worker 1 failed with exit status 3",
        "world 2: worker 0",
    ]
    world = read_world(tmp_path / "world.json")
    assert (world.generation, world.max_workers, list(world.workers)) == (2, 2, [0])


def test_files_of_an_earlier_launch(tmp_path):
    """Workers that waited then, and that a run had begun, say nothing of this one."""
    for name in ("ready-1", "begun"):
        (tmp_path / f"world.json.{name}").touch()
    source = """
folder = os.path.dirname(os.environ["MODEL_DEPLOY_WORLD"])
assert not [name for name in os.listdir(folder) if name.startswith("world.json.")]
"""
    status, _ = _launch(tmp_path, source)
    assert status == 0


# One of two workers ends, and worker 2 comes for it.
_REPLACED = """
if number == "{lost}":
    sys.exit({status})
if number == "2":
    wait_for_world("{left}")
    ready()
wait_for_world("{left}", "2")
"""


def test_restart_joins_when_it_is_ready(tmp_path):
    """A restarted worker has a new number, and is in no world before it says that it is ready."""
    source = _REPLACED.format(lost=1, status=3, left=0)
    status, lines = _launch(tmp_path, source, max_restarts=1)
    assert status == 0
    assert [line for line in lines if "world" in line] == [
        "world 1: worker 0, worker 1",
        "world 2: worker 0",
        "world 3: worker 0, worker 2",
    ]


def test_worker_begins_anew(tmp_path):
    """One that ends with 75, in the world, is replaced without a restart that counts."""
    status, lines = _launch(tmp_path, _REPLACED.format(lost=0, status=75, left=1))
    assert status == 0
    assert [line for line in lines if "log" not in line] == [
        "world 1: worker 0, worker 1",
        "worker 0 ended with 75: a new worker is started, not counted",
        "starting worker 2",
        "world 2: worker 1",
        "world 3: worker 1, worker 2",
    ]


def test_chief_is_lost_behind_the_others(tmp_path):
    """A new worker ends the run from what the others have left, however many there must be."""
    source = """
if number == "0":
    while not os.path.exists(os.environ["MODEL_DEPLOY_WORLD"] + ".end"):
        time.sleep(0.01)
    time.sleep(0.3)
    sys.exit(3)
if number == "1":
    open(os.environ["MODEL_DEPLOY_WORLD"] + ".end", "w").close()
if number == "2":
    ready()
    wait_for_world("2")
"""
    status, lines = _launch(tmp_path, source, max_restarts=1, min_workers=2, grace_secs=1.0)
    assert status == 0
    assert lines == [
        "world 1: worker 0, worker 1",
        "worker 0 failed with exit status 3",
        "starting worker 2",
        "world 2: worker 2",
    ]
    status, lines = _launch(tmp_path, source, min_workers=2, grace_secs=1.0)
    assert status == 3
    assert "worker 0 failed with exit status 3; its last lines:" in lines


def test_fewer_than_min_workers(tmp_path):
    """It waits for start_timeout, and says how many were there; the status is that of the lost."""
    source = 'sys.exit(3) if number == "1" else signal.pause()'
    status, lines = _launch(tmp_path, source, min_workers=2, start_timeout=0.5)
    assert status == 3
    assert "waiting with 1 of at least 2 workers" in lines
    assert (
        "start_timeout must be long enough for min_workers to be there, got 0.5 s with 1 of 2"
    ) in lines
    assert read_world(tmp_path / "world.json").generation == 1


def test_all_fail(tmp_path):
    """Where nobody is left the launch ends at once, with the last one's lines."""
    status, lines = _launch(tmp_path, 'print("bad"); sys.exit(4)')
    assert status == 4
    assert any(
        re.fullmatch(r"worker \d failed with exit status 4; its last lines:", x) for x in lines
    )
    assert "    bad" in lines


def test_one_more_by_signal(tmp_path):
    """SIGUSR1 starts a worker in the place of a lost one, and none where all are there."""
    source = """
if number == "1":
    sys.exit(3)
if number == "2":
    ready()
wait_for_world("0", "2")
open("together" + number, "w").close()
wait_for("go")
"""
    command = program(WORKER + f"os.chdir({str(tmp_path)!r})\n" + source)
    with Processes(tmp_path) as processes:
        launched = processes.launch(["--max_workers=2"], command)
        launched.wait_for_line("world 2: worker 0$")
        launched.signal(signal.SIGUSR1)
        launched.wait_for_line("starting worker 2$")
        launched.wait_for_line("world 3: worker 0, worker 2$")
        launched.signal(signal.SIGUSR1)
        launched.wait_for_line("no worker is started: all 2 of max_workers are there$")
        (tmp_path / "go").touch()
        assert launched.wait() == 0
        processes.assert_no_orphan()
    assert json.loads((tmp_path / "world.json").read_text())["generation"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_workers": 2}, "min_workers must go with max_workers, got 2 without"),
        ({"min_workers": 3, "max_workers": 2}, "min_workers must be at most max_workers=2, got 3"),
        ({"max_workers": 2, "num_workers": 2}, "num_workers must be 1 with max_workers.* got 2"),
        (
            {"max_workers": 2, "num_workers": 3, "num_ps": 1},
            "num_workers must be at most max_workers=2, got 3",
        ),
        (
            {"min_workers": 2, "max_workers": 3, "num_ps": 1},
            "num_workers must be at least min_workers=2 on .* without elastic, got 1",
        ),
        ({"elastic": True}, "elastic must go with max_workers, got True without"),
        (
            {"elastic": True, "num_ps": 1, "max_workers": 2, "num_workers": 2},
            "num_workers must be 1 with max_workers in an elastic run, .* got 2",
        ),
        ({"max_workers": 2, "restart": "all"}, "restart must be auto or task .* got 'all'"),
        (
            {"max_workers": 2, "chief": "master"},
            "chief must be chief in an elastic .* got 'master'",
        ),
    ],
)
def test_options(options, message):
    """Options that do not go together are refused by name."""
    with pytest.raises(ValueError, match=message):
        LaunchOptions(**options)


def test_flags_of_a_place_need_addresses(capsys):
    """Workers of elastic all-reduce have no addresses for the whole launch, as one line says."""
    assert launch_command.main(["--max_workers=2", "--", "true", "--task={task_index}"]) == 2
    assert capsys.readouterr().err == (
        "error: a command with {task_index} must be run by workers that have an address for the "
        "whole launch, got an elastic run\n"
    )


def test_a_file_of_somebody_else_stays(tmp_path, capsys):
    """A `world.json` that is no world is named in one line, and nothing is started or replaced."""
    other = tmp_path / "world.json"
    other.write_text('{"continents": 7}')
    arguments = ["--max_workers=2", f"--log_dir={tmp_path}", "--", "true"]
    assert launch_command.main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(
        r"error: log_dir must have no world\.json but that of a launch, got .*world\.json: "
        r"a world must have the fields .*, got \{'continents': 7\}\n",
        said.err,
    )
    assert other.read_text() == '{"continents": 7}'
    assert list(tmp_path.iterdir()) == [other]
