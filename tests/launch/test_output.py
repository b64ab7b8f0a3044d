"""Lines of tasks, in their log files and on the terminal."""

import io

import pytest

from model_deploy.launch.output import TAIL_LINES, TaskOutput

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize(
    ("pieces", "terminal", "log"),
    [
        pytest.param([b"a\nb\n"], b"t 1| a\nt 1| b\n", b"a\nb\n", id="lines"),
        pytest.param([b"a", b"b\nc"], b"t 1| ab\nt 1| c\n", b"ab\nc\n", id="pieces"),
        pytest.param([], b"", b"", id="nothing"),
        pytest.param([b"\n"], b"t 1| \n", b"\n", id="empty-line"),
        pytest.param([b"1%\r2%\r3%\n"], b"t 1| 3%\n", b"1%\r2%\r3%\n", id="progress"),
        pytest.param([b"a\r\n"], b"t 1| a\n", b"a\r\n", id="carriage-return-at-the-end"),
        pytest.param([b"\xff\n"], b"t 1| \xff\n", b"\xff\n", id="any-bytes"),
    ],
)
def test_lines(pieces, terminal, log, tmp_path):
    """The log has what was printed, the terminal whole lines with the name of the task."""
    shown = io.BytesIO()
    output = TaskOutput("t 1", tmp_path / "log", shown)
    for piece in pieces:
        output.write(piece)
    output.close()
    assert shown.getvalue() == terminal
    assert (tmp_path / "log").read_bytes() == log


def test_line_without_end_is_cut(tmp_path):
    """What never ends its line does not stay in memory."""
    shown = io.BytesIO()
    output = TaskOutput("t", tmp_path / "log", shown)
    output.write(b"a" * 70_000)
    assert shown.getvalue() == b"t| " + b"a" * 70_000 + b"\n"
    output.close()


def test_tail(tmp_path):
    """The last lines are kept for the report of a failure."""
    output = TaskOutput("t", tmp_path / "log", io.BytesIO())
    output.write(b"".join(b"%d\n" % i for i in range(TAIL_LINES + 5)))
    output.close()
    assert list(output.tail) == [str(i) for i in range(5, TAIL_LINES + 5)]


def test_log_goes_on(tmp_path):
    """What is in a log stays there."""
    (tmp_path / "log").write_bytes(b"before\n")
    output = TaskOutput("t", tmp_path / "log", io.BytesIO())
    output.write(b"after\n")
    output.close()
    assert (tmp_path / "log").read_bytes() == b"before\nafter\n"
