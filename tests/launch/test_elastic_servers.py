"""The launcher of elastic runs with parameter servers: fixed addresses, and servers that stay."""

import pytest

from model_deploy.cluster import read_world
from model_deploy.launch import ElasticServersLauncher
from tests.launch.programs import WORKER, launch

pytestmark = pytest.mark.one_mode

# A task knows its address; parameter servers end when a worker says so.
TASK = (
    WORKER
    + """
cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
workers = cluster["chief"] + cluster.get("worker", [])
own = workers[task["index"] + (task["type"] == "worker")]
def end():
    open("end", "w").close()
"""
)


def _launch(folder, source, server='    wait_for("end")', **options):
    """Exit status and the launcher's lines, of two workers and a server."""
    options = {"num_ps": 1, "max_workers": 2, "elastic": True, "grace_secs": 5.0, **options}
    source = f'{TASK}if task["type"] == "ps":\n{server}\n    sys.exit(0)\n{source}'
    return launch(ElasticServersLauncher, folder, source, **options)


def test_places_are_filled_again(tmp_path):
    """Who is started in the place of a lost worker, the chief, say, has its address."""
    source = """
assert world()["generation"] > 1 or world()["workers"][number] == own
if number == "0":
    open("first", "w").write(own)
    sys.exit(3)
if number == "2":
    wait_for_world("1")
    assert open("first").read() == own
    ready()
wait_for_world("1", "2")
assert world()["workers"][number] == own
if number == "1":
    end()
"""
    status, lines = _launch(tmp_path, source, max_restarts=1)
    assert status == 0
    assert lines == [
        "world 1: worker 0, worker 1",
        "worker 0 failed with exit status 3",
        "starting worker 2",
        "world 2: worker 1",
        "world 3: worker 1, worker 2",
    ]
    assert list(read_world(tmp_path / "world.json").workers) == [1, 2]


SERVER = """
    if first_time("lost"):
        sys.exit(5)
    wait_for("end")
"""


def test_server_is_started_again(tmp_path):
    """All workers are in a new world then."""
    source = """
while world()["generation"] < 2:
    time.sleep(0.01)
end()
"""
    status, lines = _launch(tmp_path, source, max_restarts=1, server=SERVER)
    assert status == 0
    assert lines == [
        "world 1: worker 0, worker 1",
        "ps 0 failed with exit status 5: starting it again",
        "world 2: worker 0, worker 1",
    ]


def test_worker_asks_for_another_world(tmp_path):
    """One that is in the world, and has lost a connection, gets another with the same workers."""
    source = """
if number == "1":
    ready()
while world()["generation"] < 2:
    time.sleep(0.01)
end()
"""
    status, lines = _launch(tmp_path, source)
    assert status == 0
    assert lines == ["world 1: worker 0, worker 1", "world 2: worker 0, worker 1"]
    assert not list(tmp_path.glob("world.json.ready-*"))


def test_worker_asks_after_a_world_that_is_over(tmp_path):
    """What it asks for has come: it saw the failure late, and asked in the world before."""
    source = """
if number == "1":
    ready(after="1")
    while world()["generation"] < 2:
        time.sleep(0.01)
    ready(after="1")
    time.sleep(0.5)
    assert world()["generation"] == 2
    ready(after="2")
while world()["generation"] < 3:
    time.sleep(0.01)
end()
"""
    status, lines = _launch(tmp_path, source)
    assert status == 0
    assert [line for line in lines if line.startswith("world")] == [
        f"world {generation}: worker 0, worker 1" for generation in (1, 2, 3)
    ]


def test_server_is_lost(tmp_path):
    """Without a restart left the launch ends with its error."""
    status, lines = _launch(tmp_path, "signal.pause()", server=SERVER)
    assert status == 5
    assert "ps 0 failed with exit status 5; its last lines:" in lines


def test_all_workers_are_lost(tmp_path):
    """The servers do not keep the launch alive."""
    status, lines = _launch(tmp_path, "sys.exit(4)")
    assert status == 4
    assert any("failed with exit status 4; its last lines:" in line for line in lines)
