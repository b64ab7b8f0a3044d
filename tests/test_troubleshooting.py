"""The messages of docs/troubleshooting.md are those that are printed: "troubleshooting.md"."""

import re
import shlex
import shutil
import signal
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import eval_image_classifier
import export_image_classifier
import train_image_classifier
from model_deploy.launch import ReservedPorts
from tests import devices
from tests.checkpoints.damages import damage
from tests.processes.harness import Processes, Tasks

pytestmark = pytest.mark.one_mode

PAGE = (Path(__file__).parents[1] / "docs" / "troubleshooting.md").read_text()
COMMANDS = {
    "train_image_classifier": train_image_classifier,
    "eval_image_classifier": eval_image_classifier,
    "export_image_classifier": export_image_classifier,
}
# A command, and what it prints; a program, and its error or what it prints.
_SHOWN = [
    shown
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for shown in re.findall(r"\$ (.*)\n((?:[^$].*\n)+)", block)
]
_PROGRAMS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
_SLOW = ("damaged", "1e6", "--start_timeout", "--job_name=ps", "steps=1", "1_000_000", "time.sleep")


def _cases(shown):
    """The heading above a case is its name; slow ones are marked."""
    cases = []
    for case in shown:
        name = re.findall(r"^### (.*)$", PAGE.partition(case[0])[0], re.MULTILINE)[-1]
        slow = any(part in case[0] for part in _SLOW)
        cases.append(pytest.param(*case, id=name, marks=[pytest.mark.slow] if slow else []))
    return cases


def assert_printed(shown, printed):
    """Each line of the page is among the printed ones; `...` stands for anything."""
    for line in shown.splitlines():
        pattern = ".*".join(map(re.escape, line.split("...")))
        assert re.search(f"^{pattern}$", printed, re.MULTILINE), f"{line}\n\n{printed}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the commands find: a run of LeNet, images, a file of settings."""
    made = tmp_path_factory.mktemp("troubleshooting")
    (made / "empty").mkdir()
    (made / "notes.txt").touch()
    (made / "mine.yaml").write_text("learning_rates: 0.1\n")
    for name, images in {"photos": 3, "damaged": 12}.items():
        for kind in ("cat", "dog"):
            (made / name / kind).mkdir(parents=True)
            for number in range(images):
                image = Image.fromarray(np.zeros([8, 8, 3], np.uint8))
                image.save(made / name / kind / f"{number}.png")
    for path in (made / "damaged" / "cat").iterdir():
        path.write_text("no image")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        run = ["", "--train_dir=digits_run", "--max_number_of_steps=2", "--batch_size=4"]
        assert train_image_classifier.main(run) == 0
    shutil.copytree(made / "digits_run", made / "broken_run")
    damage(made / "broken_run" / "model.ckpt-2.data-00000-of-00001", "truncate")
    return made


@pytest.fixture
def in_folder(folder, monkeypatch):
    """The commands run there."""
    monkeypatch.chdir(folder)


@pytest.mark.parametrize(
    ("command", "shown"), _cases(each for each in _SHOWN if "hosts" not in each[0])
)
@pytest.mark.usefixtures("in_folder")
def test_command_prints(command, shown, tmp_path, capsys):
    """A command that goes wrong prints the line of the page; so does one that only tells."""
    if "no GPU" in shown and devices.num_gpus():
        pytest.skip("there is a GPU")
    name, *flags = shlex.split(command.replace("train_dir=run", f"train_dir={tmp_path}/run"))
    status = COMMANDS[name].main([name, *flags])
    assert (status != 0) == ("error:" in shown)
    captured = capsys.readouterr()
    assert_printed(shown, captured.out + captured.err)


@pytest.mark.parametrize(
    ("command", "shown"), _cases(each for each in _SHOWN if "hosts" in each[0])
)
def test_task_prints(command, shown, tmp_path):
    """A task of a cluster prints what is wrong with it, or with the others."""
    with ReservedPorts(2) as ports, socket.socket() as taken, Processes(tmp_path) as processes:
        for given, free in zip(("2222", "2223"), map(str, ports.numbers), strict=True):
            command, shown = command.replace(given, free), shown.replace(given, free)
        _, *flags = shlex.split(command.replace("=run", f"={tmp_path}/run"))
        if "another process" in shown:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", ports.numbers[0]))
            taken.listen()
        started = [sys.executable, "-m", "train_image_classifier", *flags]
        task = processes.start("task", started)
        assert task.wait() != 0
        assert_printed(shown, task.log)


_EAGER = [each for each in _PROGRAMS if "disable_eager_execution" not in each[0]]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "shown"), _cases(_EAGER))
def test_eager_program_prints(program, shown, tmp_path):
    """A program that leaves eager execution on ends with the error of the page."""
    (tmp_path / "program.py").write_text(program)
    with Processes(tmp_path) as processes:
        process = processes.start("program", [sys.executable, str(tmp_path / "program.py")])
        assert process.wait() == 1
        assert_printed(shown, process.log)


@pytest.mark.parametrize(
    ("program", "shown"), _cases(each for each in _PROGRAMS if each not in _EAGER)
)
def test_program_prints(program, shown, tmp_path, monkeypatch, capsys):
    """A program ends with the error of the page, or tells that it waits."""
    if "device:GPU" in shown and devices.num_gpus():
        pytest.skip("there is a GPU")
    monkeypatch.chdir(tmp_path)
    error = ""
    try:
        exec(compile(program, "program.py", "exec"), {"__name__": "__main__"})
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    captured = capsys.readouterr()
    assert_printed(shown, f"{error}\n{captured.out}{captured.err}")


def _lines_after(heading):
    """The block of text below a heading."""
    return PAGE.partition(f"### {heading}\n")[2].partition("```text\n")[2].partition("```")[0]


@pytest.mark.slow
def test_lost_parameter_server(tmp_path):
    """A worker without its parameter server waits, and then gives up."""
    program = [sys.executable, "-m", "train_image_classifier", f"--train_dir={tmp_path}/run"]
    program += ["--max_number_of_steps=100000", "--stall_timeout=8"]
    program += ["--model_name=mnist_mlp"]
    with ReservedPorts(2) as ports, Processes(tmp_path) as processes:
        tasks = Tasks(processes, ports.addresses, 1, program)
        server, worker = tasks.start("ps 0"), tasks.start("worker 0")
        worker.wait_for_line(r"step 10/")
        server.signal(signal.SIGKILL)
        assert worker.wait() == 1
        shown = _lines_after("A parameter server that is lost")
        shown = shown.replace("127.0.0.1:2222", ports.addresses[1])
        assert_printed(re.sub(r"step \d+", "step ...", shown), worker.log)


@pytest.mark.slow
def test_killed_worker(tmp_path):
    """The launcher names the worker that was killed, and ends the other one."""
    program = [sys.executable, "-m", "train_image_classifier", "--all_reduce"]
    program += [f"--train_dir={tmp_path}/run", "--max_number_of_steps=100000"]
    program += ["--model_name=mnist_mlp"]
    with Processes(tmp_path) as processes:
        launch = processes.launch(["--num_workers=2"], program)
        launch.wait_for_line(r"worker 0\| step 10/")
        launch.signal_task("worker 1")
        assert launch.wait() == 128 + signal.SIGKILL
        assert_printed(_lines_after("A worker that is killed"), launch.log)
