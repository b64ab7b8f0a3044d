"""The programs of docs/from_tf_slim.md run by the commands below them, and print what is shown."""

import re
import shlex

import pytest

from tests.processes.harness import ROOT

pytestmark = pytest.mark.one_mode

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
@pytest.mark.parametrize("part", _PARTS, ids=[name for name, *_ in _PARTS])
def test_program_prints_what_is_shown(part, tmp_path, run_python):
    """The command runs the program and prints what the page shows, an error where it shows one."""
    name, program, command, shown = part
    if name == "changed_imports.py":  # its first lines; the others are those of the old program
        old = _PARTS[0][1].partition("slim = tf.contrib.slim\n")[2]
        program += old.replace("tf.contrib.", "contrib.")
    (tmp_path / name).write_text(program)
    python, *arguments = shlex.split(command)
    assert (python, name in arguments) == ("python", True)
    status, log = run_python(*arguments, cwd=tmp_path)
    assert status == shown.startswith("error: "), log
    assert log.endswith(shown)
