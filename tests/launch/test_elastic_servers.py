"""The launcher of elastic runs with parameter servers: fixed addresses, and servers that stay."""

import io

import pytest

from model_deploy.cluster import read_world
from model_deploy.launch import ElasticServersLauncher, LaunchOptions, ReservedPorts
from tests.launch.programs import program

pytestmark = pytest.mark.one_mode

# A task knows its address; parameter servers end when a worker says so.
TASK = """
number = os.environ.get("MODEL_DEPLOY_WORKER")
cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
workers = cluster["chief"] + cluster.get("worker", [])
own = workers[task["index"] + (task["type"] == "worker")]
def world():
    with open(os.environ["MODEL_DEPLOY_WORLD"]) as file:
        return json.load(file)
def wait_for_world(*numbers):
    while sorted(world()["workers"]) != sorted(numbers):
        time.sleep(0.01)
def ready():
    open(os.environ["MODEL_DEPLOY_WORLD"] + ".ready-" + number, "w").close()
def end():
    open("end", "w").close()
"""


@pytest.fixture(autouse=True)
def _in_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def _launch(folder, source, **options):
    """Exit status and the launcher's lines, of two workers and a server."""
    terminal = io.BytesIO()
    given = {"num_ps": 1, "max_workers": 2, "elastic": True, "grace_secs": 5.0, **options}
    source = TASK + f'if task["type"] == "ps":\n{_of_server(options)}\n    sys.exit(0)\n' + source
    options = {k: v for k, v in given.items() if k != "server"}
    with ReservedPorts(3) as ports:
        launcher = ElasticServersLauncher(
            LaunchOptions(**options), ports.addresses, program(source), folder, terminal
        )
        status = launcher.run()
    lines = terminal.getvalue().decode().splitlines()
    return status, [line.removeprefix("launch| ") for line in lines if line.startswith("launch|")]


def _of_server(options):
    return options.get("server", '    wait_for("end")')


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"elastic": True}, "elastic must go with max_workers, got True without"),
        (
            {"elastic": True, "num_ps": 1, "max_workers": 2, "num_workers": 2},
            "num_workers must be 1 with max_workers in an elastic run, .* got 2",
        ),
    ],
)
def test_options(options, message):
    """Options that do not go together are refused by name."""
    with pytest.raises(ValueError, match=message):
        LaunchOptions(**options)
