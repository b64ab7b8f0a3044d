"""Tasks on other machines, over real `sshd`s: where they are, how they end, who is lost."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from model_deploy.cluster import read_world
from tests.launch import ssh_hosts
from tests.launch.programs import WORKER, program
from tests.processes.forking import MARK, ROOT
from tests.processes.harness import Processes

pytestmark = [
    pytest.mark.one_mode,
    pytest.mark.skipif(ssh_hosts.missing() is not None, reason=str(ssh_hosts.missing())),
]

TRAIN = [sys.executable, str(ROOT / "train_image_classifier.py")]
FAMILY = """
subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Two hosts with sshd, and that of the launcher."""
    with ssh_hosts.SshHosts(tmp_path_factory.mktemp("ssh"), 2) as hosts:
        yield hosts


@pytest.fixture
def started(hosts, tmp_path):
    """Starts a launcher over the hosts, in a folder with a space in its name."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    with Processes(tmp_path) as processes:

        def start(flags, command, log_dir=tmp_path):
            flags = [*flags, f"--environment={MARK}", f"--log_dir={log_dir}", "--host_timeout=3"]
            command = [*hosts.launch(*flags), "--", *command]
            return processes.start("launch", command, guarded=False, cwd=folder, TF_SEEN="a b")

        start.processes, start.folder = processes, folder
        yield start


def _far_sides():
    """Processes of launchers on other machines, as their command lines show them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if b"sys.stdin.buffer.readline" in text and b"BatchMode" not in text:
            found.append(text)
    return found


def _assert_nothing_is_left(started):
    started.processes.assert_no_orphan(timeout=15)
    started.processes.wait_until(lambda: not _far_sides(), 15)


def test_tasks_are_on_their_hosts(hosts, started):
    """Workers fill the slots, servers take turns; words, folder and variables come as they are."""
    words = ["it's", "$HOME *", 'a "b"', "\n", "-x", ""]
    source = """
import socket
route = socket.socket(type=socket.SOCK_DGRAM)
route.connect(("10.213.77.1", 9))
print(json.dumps([route.getsockname()[0], json.loads(os.environ["TF_CONFIG"]), sys.argv[1:]]))
print(json.dumps([os.getcwd(), os.environ["TF_SEEN"], "HOSTNAME_OF_LAUNCHER" in os.environ]))
"""
    # More tasks on a host than its sshd lets connect at a time.
    flags = ["-H", "node1:4,node2:2", "--num_ps=3", "--ports=23000-23007"]
    launched = started(flags, [*program(source), *words])
    assert launched.wait() == 0, launched.log
    lines = dict(re.findall(r"^(.*)\| \[(\".*)\]$", launched.log, re.MULTILINE))
    assert (
        len(re.findall(rf'^\S+ \d\| \["{started.folder}", "a b", false\]$', launched.log, re.M))
        == 9
    )
    found = {
        name: json.loads(f"[{text}]")
        for name, text in re.findall(r'^(\S+ \d)\| \[("10.*)\]$', launched.log, re.MULTILINE)
    }
    assert len(lines) == 9
    node1, node2 = (host.address for host in hosts.hosts[1:])
    places = {f"worker {i}": node1 if i < 4 else node2 for i in range(6)}
    places |= {"ps 0": node1, "ps 1": node2, "ps 2": node1}
    assert {name: address for name, (address, *_) in found.items()} == places
    for name, (address, config, got) in found.items():
        job, index = config["task"]["type"], config["task"]["index"]
        host, port = config["cluster"][job][index].split(":")
        assert (host, got) == (address, words), name
        assert 23000 <= int(port) <= 23007
    addresses = [each for hosts in config["cluster"].values() for each in hosts]
    assert len(set(addresses)) == 9


def test_workers_divide_the_cores_of_their_host(started):
    """With `divide_cores` a worker shares the cores of its host with those beside it alone."""
    source = 'print("may use", len(os.sched_getaffinity(0)))'
    launched = started(["-H", "node1:2,node2:1", "--num_ps=1", "--divide_cores"], program(source))
    assert launched.wait() == 0, launched.log
    found = dict(re.findall(r"^(\S+ \d)\| may use (\d+)$", launched.log, re.M))
    cores = len(os.sched_getaffinity(0))
    half = max(1, cores // 2)
    expected = {"worker 0": half, "worker 1": half, "worker 2": cores, "ps 0": cores}
    assert {name: int(count) for name, count in found.items()} == expected


def test_failure_and_restart(started):
    """A task that fails is named with its host, also by ssh's own status, and starts again."""
    source = """
if task["type"] == "worker":
    sys.exit(255 if not first_time("once") else 3)
signal.pause()
"""
    launched = started(["-H", "node1,node2", "--num_ps=1", "--max_restarts=1"], program(source))
    assert launched.wait() == 255
    first = "launch| worker 1 failed with exit status 3 on node2: starting worker 1 again, 0 "
    assert first in launched.log
    assert "launch| worker 1 failed with exit status 255 on node2; its last lines:" in launched.log
    _assert_nothing_is_left(started)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_end_of_the_launcher(number, started):
    """A signal to the launcher ends all on all machines; its death, too."""
    launched = started(["-H", "node1,node2"], program(FAMILY))
    for i in range(2):
        launched.wait_for_line(rf"^worker {i}\| ready")
    launched.signal(number)
    assert launched.wait() == 128 + number
    _assert_nothing_is_left(started)


def test_a_killed_guard_and_connection(hosts, started):
    """Nothing stays when the processes of a connection are killed; the host is named."""
    launched = started(["-H", "node1,node2"], program(FAMILY))
    for i in range(2):
        launched.wait_for_line(rf"^worker {i}\| ready")
    found = subprocess.run(
        ["pgrep", "-f", "BatchMode=yes.*-- node2 exec"], capture_output=True, text=True, check=True
    )
    subprocess.run(["kill", "-KILL", *found.stdout.split()], check=True)
    assert launched.wait() != 0
    assert re.search("launch. (worker 1 was .*node2|node2 does not answer)", launched.log)
    _assert_nothing_is_left(started)


def test_a_lost_host(hosts, started):
    """A host whose link is gone is named; nothing stays there, though nobody could tell it."""
    launched = started(["-H", "node1,node2"], program(FAMILY))
    for i in range(2):
        launched.wait_for_line(rf"^worker {i}\| ready")
    with hosts.cut(2):
        assert launched.wait(30) == 255
        assert "launch| worker 1 was lost: no connection to node2; its last" in launched.log
        _assert_nothing_is_left(started)


def test_hosts_that_come_and_go(hosts, started, tmp_path):
    """A host that is new in the file gets workers in a new world; one that is left out has none."""
    source = (
        WORKER
        + """
ready()
print("here", flush=True)
while number not in world()["workers"]:
    time.sleep(0.01)
print("in", flush=True)
while number in world()["workers"] and not os.path.exists("end"):
    time.sleep(0.01)
"""
    )
    path = tmp_path / "hosts"
    path.write_text("node1:1 # the first\n")
    flags = [f"--hosts_file={path}", "--elastic", "--max_workers=2"]
    launched = started(flags, program(source))
    launched.wait_for_line(r"^worker 0\| in")
    path.write_text("node1:1\nnode2 slots=1\n")
    launched.wait_for_line(r"^launch\| world \d+: worker 0, worker 1$")
    world = read_world(tmp_path / "world.json")
    assert [each.split(":")[0] for each in world.workers.values()] == [
        host.address for host in hosts.hosts[1:]
    ]
    path.write_text("node1:1\nnode2:0\n")
    launched.wait_for_line(
        "^launch. the hosts stay as they were: the slots of hosts_file .* 'node2:0'"
    )
    path.write_text("node2\n")
    launched.wait_for_line("^launch. node1 is no longer one of the hosts")
    launched.wait_for_line("^launch. worker 0 has left")
    launched.wait_for_line(r"^launch\| world \d+: worker 1$")
    (started.folder / "end").touch()
    assert launched.wait() == 0, launched.log
    _assert_nothing_is_left(started)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-H", "node1,10.213.77.2"], "hosts must be named once each, got .* both 10.213.77.2"),
        (
            ["-H", "node1,no.such.host"],
            "hosts must answer, got no answer of no.such.host .*not resolve",
        ),
        (["-H", "node1,10.213.77.1"], "got no answer of 10.213.77.1 .ssh: .* Connection refused"),
        (
            ["-H", "node1", "--remote_python=/no/python"],
            "got no answer of node1 .*/no/python: No such file",
        ),
        (
            ["-H", "node1", "--ports=23000-23000", "--num_ps=1"],
            "ports must have at least 2 that are",
        ),
        (
            ["-H", "node1", "--network=10.9.0.0/16"],
            "network must be one that each host is in, .* node1",
        ),
        (["-H", "unknown@10.213.77.2"], "got no answer of unknown@.* Permission denied"),
    ],
)
def test_rejects(flags, message, started):
    """A host that cannot be had is one line, status 2, and nothing is started anywhere."""
    launched = started(flags, program('open("begun", "w")'))
    assert launched.wait() == 2
    [line] = launched.log.splitlines()
    assert re.search(message, line)
    assert not (started.folder / "begun").exists()


@pytest.mark.parametrize("hidden", ["", "logs"])
def test_a_folder_that_is_not_shared(hidden, hosts, started, tmp_path):
    """A host that lacks the launcher's folder is named, or that of the logs in an elastic run."""
    (tmp_path / "logs").mkdir()
    hosts.stop(2)
    hosts.start(2, hidden=tmp_path / hidden)
    try:
        flags = ["-H", "node1,node2", "--elastic"]
        launched = started(flags, program(""), log_dir=tmp_path / "logs")
        assert launched.wait() == 2
    finally:
        hosts.stop(2)
        hosts.start(2)
    missing = tmp_path / "logs" if hidden else started.folder
    line = f"error: hosts must see the launcher's folder {missing}, got node2 without it\n"
    assert launched.log == line


def test_unknown_host_key(hosts, started):
    """A host whose key is not known is no question, but one line that says so."""
    known = hosts.folder / "known_hosts"
    kept = known.read_text()
    known.write_text("")
    try:
        launched = started(["-H", "node1"], program(""))
        assert launched.wait() == 2
    finally:
        known.write_text(kept)
    [line] = launched.log.splitlines()
    assert (
        line == "error: hosts must answer, got no answer of node1 (Host key verification failed.)"
    )


@pytest.mark.slow
def test_training(hosts, started):
    """A model is trained by workers and a parameter server on two machines."""
    flags = ["--model_name=mnist_mlp", "--dataset_name=synthetic"]
    flags += ["--num_clones=1", "--clone_on_cpu"]
    flags += ["--max_number_of_steps=20", "--batch_size=4", "--train_dir=run"]
    launched = started(["-H", "node1,node2", "--num_ps=1"], [*TRAIN, *flags])
    assert launched.wait() == 0, launched.log
    assert "made its last step" in launched.log
    assert (started.folder / "run" / "model.ckpt-20.index").exists()
    _assert_nothing_is_left(started)
