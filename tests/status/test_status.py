"""`python -m model_deploy.status`: a table of the tasks of a run, from a file in its folder."""

import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from model_deploy.status import (
    STATUS_FILE,
    Status,
    TaskStatus,
    read_status,
    status_report,
    write_status,
)
from model_deploy.status import __main__ as command

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[2]
SHARES = {"input": 0.5, "computation": 0.25, "waiting": 0.125, "exchange": 0.125, "saving": 0.0}
TASKS = [
    TaskStatus("worker 0 (chief)", "a:1", 40, 6.25, SHARES, 700 * 2**20, 998.0),
    TaskStatus("worker 1", "b:1", 39, 6.2, SHARES, 2**30, 1000.0, "1.8x slower (input)"),
    TaskStatus("ps 0", "c:1"),
]
STATUS = Status(1000.0, 2.0, "under way", 40, 100, TASKS)
TABLE = """\
task              address  step  steps/s  input  computation  waiting  exchange  saving     memory\
  last heard
worker 0 (chief)  a:1        40     6.25    50%          25%      12%       12%      0%    700 MiB\
   4.0 s ago
worker 1          b:1        39      6.2    50%          25%      12%       12%      0%  1,024 MiB\
   2.0 s ago  1.8x slower (input)
ps 0              c:1         -        -      -            -        -         -       -          -\
           -"""


def test_report():
    """The table has a row for each task; what is not known is a dash."""
    assert status_report(STATUS, 1002.0) == f"under way, step 40 of 100\n\n{TABLE}"


@pytest.mark.parametrize(
    ("changes", "now", "line"),
    [
        ({}, 1010.0, "under way, step 40 of 100"),
        ({"max_steps": None}, 1001.0, "under way, step 40"),
        ({}, 1040.0, "last written 40 s ago, at step 40 of 100: is the run dead?"),
        ({"every_secs": 10.0}, 1040.0, "under way, step 40 of 100"),
        ({"state": "ended"}, 1003.5, "ended, step 40 of 100, 3.5 s ago"),
        ({"state": "stopped"}, 8200.0, "stopped, step 40 of 100, 2:00:00 ago"),
        ({"state": "failed"}, 990.0, "failed, step 40 of 100, 0.0 s ago"),
    ],
)
def test_first_line(changes, now, line):
    """The first line says whether the run is under way, has ended, or has not written for long."""
    report = status_report(dataclasses.replace(STATUS, **changes), now)
    assert report.splitlines()[0] == line


def test_file(tmp_path):
    """The status comes back from its file; what a later version may add is ignored."""
    write_status(tmp_path, STATUS)
    assert read_status(tmp_path) == STATUS
    fields = json.loads((tmp_path / STATUS_FILE).read_text())
    fields["tasks"][0]["more"] = fields["more"] = 1
    (tmp_path / STATUS_FILE).write_text(json.dumps(fields))
    assert read_status(tmp_path) == STATUS


FIELDS = dataclasses.asdict(STATUS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "must be that of a run, with status.json, got"),
        (b"", "must be the status of a run, got"),
        (b"\xff\xfe\x00", "must be the status of a run, got"),
        (b"[" * 100_000, "must be the status of a run, got"),
        (b"[1, 2]", "must be the status of a run, got"),
        (b"{}", "got 'tasks'"),
        ({"tasks": []}, "missing 5 required positional arguments"),
        ({**FIELDS, "step": "7"}, "got step '7'"),
        ({**FIELDS, "step": True}, "got step True"),
        ({**FIELDS, "state": "odd"}, "got state must be one of under way, ended, .*, got 'odd'"),
        ({**FIELDS, "written_at": float("nan")}, "a number that is not finite"),
        ({**FIELDS, "tasks": [7]}, "must be the status of a run, got"),
        ({**FIELDS, "tasks": [{"name": "a", "shares": {"input": "x"}}]}, "got shares"),
    ],
)
def test_garbage_is_one_line(tmp_path, capsys, content, message):
    """A file that is none of ours, or a folder without one, is one line, and exit status 2."""
    if content is not None:
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        (tmp_path / STATUS_FILE).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_status(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        command.main([str(tmp_path)])
    error = capsys.readouterr().err.splitlines()
    assert "error: " in error[-1]
    assert len([line for line in error if line.startswith("python -m")]) == 1


def test_watch_must_be_positive(capsys):
    """An interval of nothing is refused."""
    with pytest.raises(SystemExit, match="2"):
        command.main(["run", "--watch=0"])
    assert "watch must be more than 0, got 0" in capsys.readouterr().err


def test_command(tmp_path):
    """The command prints the table, without importing TensorFlow."""
    now = time.time()
    write_status(tmp_path, dataclasses.replace(STATUS, written_at=now, tasks=TASKS[2:]))
    program = (
        "import sys; from model_deploy.status.__main__ import main; main(sys.argv[1:]);"
        "print('tensorflow' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = found.stdout.splitlines()
    assert lines[0] == "under way, step 40 of 100"
    assert lines[3].startswith("ps 0")
    assert lines[-1] == "False"
