"""The commands of docs/cluster.md work, and print what it shows."""

import difflib
import re
import sys

import pytest

from model_deploy.launch import ReservedPorts
from tests.processes.harness import ROOT, Processes
from tests.processes.standing_in import commands

pytestmark = pytest.mark.one_mode

DOCUMENT = (ROOT / "docs" / "cluster.md").read_text()
# Each command, with the output that is shown before the next.
COMMANDS = [
    (command, "\n".join(re.findall(r"```text\n(.*?)```", rest, re.DOTALL)))
    for command, rest in re.findall(r"```bash\n(.*?)```\n(.*?)(?=```bash|\Z)", DOCUMENT, re.DOTALL)
]
# The programs, in the order in which the page has them, under the names that it gives them.
SOURCES = dict(
    zip(
        ("one.py", "many.py", "count.py"),
        re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL),
        strict=True,
    )
)
# Commands of the document, and what runs in their place, in forks. The steps of training are small.
_TRAIN = "train_image_classifier.py --model_name=mnist_mlp --batch_size=4 --num_clones=1"
SCRIPTS = {
    "train_image_classifier": f'run {sys.executable} {ROOT}/{_TRAIN} "$@"',
    "python": f'run {sys.executable} "$@"',
}


def _with_free_ports(command, shown, ports):
    """Both texts with the ports of the document replaced by reserved ones."""
    written = sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", command)))
    numbers = dict(zip(written, map(str, ports.numbers), strict=False))

    def replace(text):
        return re.sub(r"(127\.0\.0\.1:)(\d+)", lambda match: match[1] + numbers[match[2]], text)

    return replace(command), replace(shown)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "shown"), COMMANDS, ids=["launcher", "flags", "check", "own-program", "parts"]
)
def test_commands_of_the_document(command, shown, tmp_path, monkeypatch):
    """Each command on the loopback ends with 0, prints the lines shown, and leaves nothing."""
    for name, source in SOURCES.items():
        (tmp_path / name).write_text(source)
    with ReservedPorts(4) as ports, commands(tmp_path, SCRIPTS) as folder:
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        processes = Processes(tmp_path)
        command, shown = _with_free_ports(command, shown, ports)
        script = f"set -e\ncd '{tmp_path}'\n{command}"
        with processes:
            shell = processes.start("shell", ["bash", "-c", script], guarded=False)
            assert shell.wait() == 0, shell.log
            assert processes.living() == []
    assert set(shown.splitlines()) <= set(shell.log.splitlines())


def test_document_has_commands():
    """All five are found: with the launcher, by flags, the check, own programs."""
    words = [" ".join(command.splitlines()[-1].split()[:3]) for command, _ in COMMANDS]
    assert [word for word in words if word.startswith("python")] == [
        "python -m model_deploy.launch",
        "python -m model_deploy.cluster",
        "python -m model_deploy.launch",
        "python -m model_deploy.launch",
    ]
    assert len(COMMANDS) == 5


def test_a_cluster_takes_five_lines():
    """The program for a cluster is that of one machine but for five lines."""
    one, many = (SOURCES[name].splitlines() for name in ("one.py", "many.py"))
    lines = [line[2:] for line in difflib.ndiff(one, many) if line.startswith("+ ")]
    assert len([line for line in lines if line]) == 5


@pytest.mark.slow
def test_the_program_for_a_cluster_trains_alone(tmp_path, monkeypatch):
    """Without the description of a cluster it is the program of one machine."""
    for name in ("TF_CONFIG", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    exec(compile(SOURCES["many.py"], "many.py", "exec"), {"__name__": "__main__"})
    assert (tmp_path / "cluster_run" / "model.ckpt-100.index").exists()
