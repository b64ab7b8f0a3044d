"""The commands of docs/cluster.md work, and print what it shows."""

import re
import shlex
import sys

import pytest

from model_deploy.launch import ReservedPorts
from tests.processes.harness import LAUNCH, ROOT, Processes

DOCUMENT = (ROOT / "docs" / "cluster.md").read_text()
# Each command, with the output that is shown before the next.
COMMANDS = [
    (command, "\n".join(re.findall(r"```text\n(.*?)```", rest, re.DOTALL)))
    for command, rest in re.findall(r"```bash\n(.*?)```\n(.*?)(?=```bash|\Z)", DOCUMENT, re.DOTALL)
]
[PROGRAM] = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
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
    ("command", "shown"), COMMANDS, ids=["launcher", "flags", "check", "own-program"]
)
def test_commands_of_the_document(command, shown, tmp_path, monkeypatch):
    """Each command on the loopback ends with 0, prints the lines shown, and leaves nothing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}")
        (folder / name).chmod(0o755)
    (tmp_path / "count.py").write_text(PROGRAM)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    with ReservedPorts(4) as ports, Processes(tmp_path) as processes:
        command, shown = _with_free_ports(command, shown, ports)
        script = f"set -e\ncd '{tmp_path}'\n{command}"
        shell = processes.start("shell", ["bash", "-c", script], guarded=False)
        assert shell.wait() == 0, shell.log
        assert processes.living() == []
    assert set(shown.splitlines()) <= set(shell.log.splitlines())


def test_document_has_commands():
    """All four are found: with the launcher, by flags, the check, the own program."""
    words = [" ".join(command.split()[:3]) for command, _ in COMMANDS]
    assert [word for word in words if word.startswith("python")] == [
        "python -m model_deploy.launch",
        "python -m model_deploy.cluster",
        "python -m model_deploy.launch",
    ]
    assert len(COMMANDS) == 4
