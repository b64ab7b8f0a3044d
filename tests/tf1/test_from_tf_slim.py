"""The programs of docs/from_tf_slim.md run by the commands below them, and print what is shown."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "from_tf_slim.md").read_text()
# A sentence that names a file, the file, the command that runs it, and what that prints.
_PARTS = re.findall(
    r"`(\w+\.py)`:\n\n```python\n(.*?)^```\n.*?^```bash\n(.*?)\n```\n\n```text\n(.*?)^```\n",
    PAGE,
    re.DOTALL | re.MULTILINE,
)


def test_every_program_is_run():
    """Each block of Python and of commands is among those that run here: "from_tf_slim.md"."""
    assert len(_PARTS) == len(re.findall("^```python$", PAGE, re.MULTILINE))
    assert len(_PARTS) == len(re.findall("^```bash$", PAGE, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "program", "command", "shown"), _PARTS, ids=[name for name, *_ in _PARTS]
)
def test_program_prints_what_is_shown(name, program, command, shown, tmp_path):
    """The command runs the program and prints what the page shows, an error where it shows one."""
    (tmp_path / name).write_text(program)
    python, *arguments = shlex.split(command)
    assert (python, name in arguments) == ("python", True)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if shown.startswith("error: "):
        assert done.returncode == 1
        assert shown in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(shown)
