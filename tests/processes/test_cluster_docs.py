"""The commands of docs/cluster.md work, and print what it shows."""

import difflib
import re
import shlex
import sys

import pytest

from model_deploy.launch import ReservedPorts
from tests.processes.harness import LAUNCH, ROOT, Processes

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
# Commands of the document, and what runs in their place. The launcher comes without the imports
# of the package, and the steps of training are small.
PROGRAMS = {
    "train_image_classifier": (
        f'exec {sys.executable} {ROOT}/train_image_classifier.py --batch_size=4 --num_clones=1 "$@"'
    ),
    "python": f"""
if [ "$1 $2" = "-m model_deploy.launch" ]; then
    shift 2
    exec {shlex.join(LAUNCH)} "$@"
fi
exec {sys.executable} "$@"
""",
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
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}")
        (folder / name).chmod(0o755)
    for name, source in SOURCES.items():
        (tmp_path / name).write_text(source)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    with ReservedPorts(4) as ports, Processes(tmp_path) as processes:
        command, shown = _with_free_ports(command, shown, ports)
        script = f"set -e\ncd '{tmp_path}'\n{command}"
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
