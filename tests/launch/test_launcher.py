"""The launcher runs all tasks to their end, starts crashed ones again, and reports failures."""

import io
import json
import os
import shlex
import signal

import pytest

from model_deploy.commands import NOT_SAVED
from model_deploy.launch import Launcher, LaunchOptions
from model_deploy.launch.__main__ import main
from tests.launch.programs import program
from tests.processes.harness import LAUNCH, Processes

pytestmark = pytest.mark.one_mode

WORKER_1 = 'task["type"] == "worker"'  # the chief is of another type
RESTART = "launch| worker 1 failed with exit status 3: starting {} again, {} restarts left"


class Launch:
    """A launch in this process that has ended: its exit status and its lines."""

    def __init__(self, log_dir, source, *words, **options):
        given = LaunchOptions(**{"num_workers": 2, **options})
        addresses = [f"h:{i + 1}" for i in range(given.num_workers + given.num_ps)]
        terminal = io.BytesIO()
        source = f"os.chdir({str(log_dir)!r})\n{source}"
        command = [*program(source), *words]
        launcher = Launcher(given, addresses, command, log_dir, terminal)
        self.status = launcher.run()
        lines = terminal.getvalue().decode().splitlines()
        self.lines = [line for line in lines if "| process " not in line]

    def of(self, name):
        """What a task, or the launcher itself, printed."""
        return [line for line in self.lines if line.startswith(f"{name}| ")]


def test_tasks_find_their_place(tmp_path):
    """Each task gets its own TF_CONFIG and has its own log."""
    launch = Launch(tmp_path, 'print(os.environ["TF_CONFIG"])', num_workers=3, num_ps=2)
    assert launch.status == 0
    cluster = {"chief": ["h:1"], "worker": ["h:2", "h:3"], "ps": ["h:4", "h:5"]}
    places = {
        "ps 0": ("ps", 0),
        "ps 1": ("ps", 1),
        "worker 0": ("chief", 0),
        "worker 1": ("worker", 0),
        "worker 2": ("worker", 1),
    }
    for name, (kind, index) in places.items():
        expected = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
        assert launch.of(name) == [f"{name}| {expected}"]
        log = (tmp_path / f"{name.replace(' ', '-')}.log").read_text()
        assert log.splitlines()[1:] == [expected]
    assert len(launch.lines) == 5


@pytest.mark.parametrize(
    ("chief", "jobs", "first", "second"),
    [
        ("master", {"master": ["h:1"], "worker": ["h:2"]}, ("master", 0), ("worker", 0)),
        ("worker", {"worker": ["h:1", "h:2"]}, ("worker", 0), ("worker", 1)),
    ],
)
def test_the_chief_by_another_name(tmp_path, chief, jobs, first, second):
    """The first worker has the job that programs take for the chief's; its log stays the same."""
    launch = Launch(tmp_path, 'print(os.environ["TF_CONFIG"])', num_ps=1, chief=chief)
    assert launch.status == 0
    for name, (kind, index) in {"worker 0": first, "worker 1": second, "ps 0": ("ps", 0)}.items():
        [line] = launch.of(name)
        found = json.loads(line.removeprefix(f"{name}| "))
        assert found == {
            "cluster": {**jobs, "ps": ["h:3"]},
            "task": {"type": kind, "index": index},
        }


@pytest.mark.parametrize("chief", ["chief", "master", "worker"])
def test_flags_of_the_place(tmp_path, chief):
    """Words of the command have the task's place where they ask for it, and other braces as are."""
    words = ("--ps_hosts={ps_hosts}", "{worker_hosts}", "{job_name}:{task_index}", "{ps}", "{}")
    launch = Launch(tmp_path, "print(*sys.argv[1:])", *words, num_ps=2, chief=chief)
    assert launch.status == 0
    for name in ("worker 0", "worker 1", "ps 0", "ps 1"):
        place = name.replace(" ", ":")
        assert launch.of(name) == [f"{name}| --ps_hosts=h:3,h:4 h:1,h:2 {place} {{ps}} {{}}"]


def test_workers_divide_the_cores(tmp_path, monkeypatch):
    """With `divide_cores` each worker keeps to its share, others and without it to none.

    A share that the launcher's own environment names is not one of its tasks.
    """
    monkeypatch.setenv("MODEL_DEPLOY_CORES", "0/2")
    source = """
print(*os.sched_getaffinity(0), "MODEL_DEPLOY_CORES" in os.environ)
"""
    there = os.sched_getaffinity(0)
    shares = {}
    for divided in (False, True):
        launch = Launch(tmp_path, source, num_ps=1, divide_cores=divided)
        assert launch.status == 0
        for name in ("worker 0", "worker 1", "ps 0"):
            *said, last = launch.of(name)
            *cores, knows = last.removeprefix(f"{name}| ").split()
            shares[divided, name] = set(map(int, cores))
            assert knows == "False"
            assert len(said) == (divided and name != "ps 0")
    first, second = shares.pop((True, "worker 0")), shares.pop((True, "worker 1"))
    assert all(share == there for share in shares.values())
    assert len(first) == len(second) == max(1, len(there) // 2)
    assert len(first | second) == max(1, len(there) // 2 * 2)


def test_first_failure(tmp_path):
    """A failure ends the others, and is reported with its last lines and its status."""
    source = f"""
if {WORKER_1}:
    print("bad", file=sys.stderr)
    sys.exit(3)
signal.pause()
"""
    launch = Launch(tmp_path, source, num_ps=1)
    assert launch.status == 3
    heading, *tail, last = launch.of("launch")
    assert heading == "launch| worker 1 failed with exit status 3; its last lines:"
    assert [line.split()[1] for line in tail] == ["process", "bad"]
    assert last == f"launch| the whole log is {tmp_path / 'worker-1.log'}"


def test_servers_end_last(tmp_path):
    """A chief that is told to end finds its parameter servers, whose variables it saves."""
    source = f"""
if task["type"] == "ps":
    note_pid("ps")
    signal.pause()
if {WORKER_1}:
    wait_for("ready")
    sys.exit(3)
def save(*_):
    time.sleep(0.2)
    print("saved", os.path.exists("/proc/" + open("ps").read()))
    sys.exit(1)
signal.signal(signal.SIGTERM, save)
wait_for("ps")
open("ready", "w").close()
signal.pause()
"""
    launch = Launch(tmp_path, source, num_ps=1)
    assert launch.of("worker 0") == ["worker 0| saved True"]


def test_death_by_signal(tmp_path):
    """A task that was killed says by which signal; the status is a shell's."""
    launch = Launch(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", num_workers=1)
    assert launch.status == 137
    assert launch.of("launch")[0] == "launch| worker 0 was ended by SIGKILL; its last lines:"


def test_restart_of_a_task(tmp_path):
    """A crashed task starts again, in its log; the others go on."""
    source = f"""
if {WORKER_1} and first_time("once"):
    sys.exit(3)
if {WORKER_1}:
    first_time("again")
wait_for("again")
print("done")
"""
    launch = Launch(tmp_path, source, num_ps=1, max_restarts=2)
    assert launch.status == 0
    assert launch.of("launch") == [RESTART.format("worker 1", 1)]
    assert sorted(set(launch.lines) - set(launch.of("launch"))) == [
        "ps 0| done",
        "worker 0| done",
        "worker 1| done",
    ]
    assert (tmp_path / "worker-1.log").read_text().count("process ") == 2


def test_restarts_are_counted(tmp_path):
    """After the last restart the next failure counts."""
    source = f"sys.exit(3) if {WORKER_1} else signal.pause()"
    launch = Launch(tmp_path, source, num_ps=1, max_restarts=2)
    assert launch.status == 3
    assert launch.of("launch")[:2] == [RESTART.format("worker 1", left) for left in (1, 0)]


def test_a_task_that_could_not_save(tmp_path):
    """A chief whose last steps could not be saved is not started again: it would lose them, too."""
    source = f"signal.pause() if {WORKER_1} else sys.exit({NOT_SAVED})"
    launch = Launch(tmp_path, source, max_restarts=2)
    assert launch.status == NOT_SAVED
    line = "launch| a task could not save its last steps: see to its train_dir before a restart"
    assert launch.of("launch")[0] == line


@pytest.mark.parametrize("options", [{"num_ps": 0}, {"num_ps": 1, "restart": "all"}])
def test_restart_of_all(options, tmp_path):
    """Without ps, or on request, all tasks are ended and start again; it counts once."""
    source = f"""
if first_time(task["type"]):
    if {WORKER_1}:
        for name in {["chief", "ps"][: 1 + options["num_ps"]]}:
            wait_for(name)
        sys.exit(3)
    signal.pause()
print("done")
"""
    launch = Launch(tmp_path, source, max_restarts=1, **options)
    assert launch.status == 0
    assert launch.of("launch") == [RESTART.format("all tasks", 0)]
    assert sum(line.endswith("| done") for line in launch.lines) == 2 + options["num_ps"]


def test_task_that_outlives_the_chief(tmp_path):
    """What goes on after the chief, with nobody to work with, is ended after the grace."""
    launch = Launch(
        tmp_path, 'if task["type"] != "chief": signal.pause()', num_ps=1, grace_secs=1.0
    )
    assert launch.status == 0
    assert launch.of("launch") == ["launch| the chief has ended: ending ps 0, worker 1"]


@pytest.mark.parametrize("restarts", [0, 1])
def test_failure_after_the_chief(restarts, tmp_path):
    """After the chief's end nothing is started again; a failure without restarts counts."""
    source = f"""
if {WORKER_1}:
    wait_for("chief")
    chief = open("chief").read()
    while os.path.exists(f"/proc/{{chief}}"): time.sleep(0.01)
    sys.exit(3)
if task["type"] == "chief":
    open("pid", "w").write(str(os.getppid()))
    os.rename("pid", "chief")
"""
    launch = Launch(tmp_path, source, max_restarts=restarts, num_ps=1)
    assert launch.status == (0 if restarts else 3)
    assert launch.of("launch")[0] == (
        "launch| worker 1 failed with exit status 3"
        + (" after the chief had ended: not starting it again" if restarts else "; its last lines:")
    )


def test_task_that_does_not_end(tmp_path):
    """What does not end on SIGTERM is killed after the grace."""
    source = f"""
if {WORKER_1}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    first_time("ready")
    while True: signal.pause()
wait_for("ready")
sys.exit(4)
"""
    launch = Launch(tmp_path, source, grace_secs=0.1)
    assert launch.status == 4
    assert "launch| worker 1 did not end in 0.1 s: killing it" in launch.lines


def test_task_that_closes_its_output(tmp_path):
    """A task may go on without output."""
    source = "os.close(1); os.close(2); time.sleep(0.2); os._exit(6)"
    assert Launch(tmp_path, source, num_workers=1).status == 6


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_to_the_launcher(number, tmp_path):
    """On a signal all tasks may end by themselves; nothing is left."""
    source = """
def end(*_):
    print("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready")
signal.pause()
"""
    with Processes(tmp_path) as processes:
        launch = processes.launch(["--num_ps=1"], program(source))
        for name in ("worker 0", "ps 0"):
            launch.wait_for_line(f"^{name}. ready")
        launch.signal(number)
        assert launch.wait() == 128 + number
        assert processes.living() == []
    assert f"launch| {number.name}: ending all tasks\n" in launch.log
    assert "worker 0| saved\n" in launch.log
    assert "ps 0| saved\n" in launch.log


def test_launcher_is_killed(tmp_path):
    """When the launcher is killed all tasks are, and what they started."""
    source = """
subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("ready")
signal.pause()
"""
    with Processes(tmp_path) as processes:
        launch = processes.launch(["--num_workers=2"], program(source))
        for i in range(2):
            launch.wait_for_line(f"^worker {i}. ready")
        assert len(processes.living()) == 1 + 2 * 3  # of each worker: guard, task, child
        launch.signal(signal.SIGKILL)
        assert launch.wait() == 128 + signal.SIGKILL
        processes.assert_no_orphan()


def test_terminal_is_closed(tmp_path):
    """When nobody reads the launcher's lines any more, it ends, and all tasks with it."""
    launch = [*LAUNCH, f"--log_dir={tmp_path}", "--", *program("while True: print('line')")]
    with Processes(tmp_path) as processes:
        pipe = ["bash", "-c", f"{shlex.join(launch)} | head -n 5"]
        shell = processes.start("shell", pipe, guarded=False)
        assert shell.wait() == 0
        processes.assert_no_orphan()
    assert "worker 0| line\n" in shell.log
    assert "Traceback" not in shell.log


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num_ps=1"], "a command must follow after --, got none"),
        (["--num_ps=1", "--"], "a command must follow after --, got none"),
        (["true"], "arguments must be flags such as --train_dir=DIR, got true"),
        (["true", "--", "x"], "arguments must be flags such as --train_dir=DIR, got true"),
        (["--num_workers=0", "--", "x"], "num_workers must be at least 1, got 0"),
        (["--restart=none", "--", "x"], "restart must be one of auto, task, all, got 'none'"),
        (["--no_such", "--", "x"], "Unknown command line flag 'no_such'"),
        (
            ["--log_dir=/dev/null/x", "--", "x"],
            "error: log_dir must be a folder that can be written, got /dev/null/x: Not a directory",
        ),
    ],
)
def test_wrong_command_line(arguments, message, capsys):
    """A mistake in the command line is one line and status 2."""
    assert main(arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_needs_linux(capsys, monkeypatch):
    """Elsewhere the kernel cannot keep the promise about orphans."""
    monkeypatch.setattr("sys.platform", "darwin")
    assert main(["--", "x"]) == 2
    assert capsys.readouterr().err == "error: the system must be Linux for a launch, got darwin\n"


def test_help(capsys):
    """The flags are listed with their defaults."""
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Starts a whole cluster on this machine")
    assert "--num_workers" in shown
