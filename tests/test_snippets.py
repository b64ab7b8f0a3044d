"""The programs in README.md and docs/ run, and print what is shown below them."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[1]
# A program, and the output that follows it, if it is shown.
_PROGRAM = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
# These run elsewhere: they need a folder of a run, a cluster, or are long.
_RUN_BY = {
    "README.md": "tests/test_docs.py",
    "cluster.md": "tests/processes/test_cluster_docs.py",
    "export.md": "tests/test_export_image_classifier.py",
    "from_tf_slim.md": "tests/tf1/test_from_tf_slim.py",
    "inputs.md": "tests/inputs/test_inputs_docs.py",
    "keras.md": "tests/keras/test_keras_docs.py",
    "troubleshooting.md": "tests/test_troubleshooting.py",
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = [
    pytest.param(match[1], match[2], id=f"{page.name}-{number}")
    for page in PAGES
    if page.name not in _RUN_BY
    for number, match in enumerate(_PROGRAM.finditer(page.read_text()))
]


# By the supervisor of slim.learning.train, which closes the writer twice.
@pytest.mark.filterwarnings("ignore:Attempting to use a closed FileWriter:UserWarning")
@pytest.mark.parametrize(("program", "shown"), PROGRAMS)
def test_program_prints_what_is_shown(program, shown, tmp_path, monkeypatch, capsys):
    """Each program is complete, ends, and prints what the page shows, or at least something."""
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "program", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert printed == shown if shown else printed.strip()


@pytest.mark.parametrize("page", _RUN_BY)
def test_other_programs_run_elsewhere(page):
    """The pages whose programs do not run here have programs, and a test that reads them."""
    [path] = [path for path in PAGES if path.name == page]
    assert _PROGRAM.search(path.read_text())
    assert f'"{page}"' in (ROOT / _RUN_BY[page]).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_program_escapes(page):
    """Each block of code says what it is, so that no Python is taken for something else."""
    languages = re.findall(r"^ *```(.*)$", page.read_text(), re.MULTILINE)[::2]
    assert set(languages) <= {"", "python", "bash", "console", "text", "yaml"}
    unnamed = re.findall(r"^```\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert not [block for block in unnamed if re.search(r"^(?:import|from) \w", block)]
