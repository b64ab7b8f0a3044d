"""A command takes its options from flags and YAML, and answers mistakes in one line."""

import dataclasses
import re
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.commands import command_line
from model_deploy.commands.command_line import (
    parse_options,
    read_options,
    run_command,
    saved_options,
    write_options,
)
from model_deploy.commands.options import Options, option
from tests.checkpoints.damages import damage

pytestmark = pytest.mark.one_mode


@dataclasses.dataclass(frozen=True)
class Sample(Options):
    """One field of each kind."""

    folder: str | None = option(None, "a folder")
    count: int = option(1, "a count", minimum=1)
    rate: float = option(0.5, "a rate", above=0)
    flag: bool = option(False, "a switch")
    debug: bool = option(False, "show where an error comes from")


def parse(*arguments, **settings):
    return parse_options(["program", *map(str, arguments)], Sample, **settings)


def test_a_flag_counts_more_than_the_file(tmp_path):
    """Flags give the options their values; what is not given keeps its default. A flag wins over a
    line of `--config`, also with the default value; that wins over it. An empty file has none.
    """
    assert parse("--count=2", "--rate=0.25", "--flag") == Sample(count=2, rate=0.25, flag=True)
    assert parse() == Sample()
    path = tmp_path / "mine.yaml"
    path.touch()
    assert parse(f"--config={path}") == Sample()
    path.write_text("count: 3\nrate: 1e-4\n")
    assert parse(f"--config={path}") == Sample(count=3, rate=0.0001)
    assert parse(f"--config={path}", "--count=1") == Sample(count=1, rate=0.0001)


def test_an_empty_flag_takes_a_text_back(tmp_path):
    """`--name=` is none where the file has a text, and an empty text where there is none."""
    path = tmp_path / "mine.yaml"
    path.write_text("folder: there\ncount: 3\n")
    assert parse(f"--config={path}", "--folder=") == Sample(count=3)
    assert parse("--folder=") == Sample(folder="")


def test_recipes_of_the_package(tmp_path, monkeypatch, capsys):
    """A recipe is found in the package, and said to be; a file at its path comes first."""
    monkeypatch.chdir(tmp_path)
    packaged = tmp_path / "packaged"
    packaged.mkdir()
    (packaged / "quick.yaml").write_text("count: 3\n")
    monkeypatch.setattr(command_line, "_PACKAGED", str(packaged))
    assert parse("--config=recipes/quick.yaml") == Sample(count=3)
    assert capsys.readouterr().out == "settings of the packaged recipes/quick.yaml\n"
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "quick.yaml").write_text("count: 4\n")
    assert parse("--config=recipes/quick.yaml") == Sample(count=4)
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match=r"a recipe of recipes/quick.yaml, got recipes/slow.yaml"):
        parse("--config=recipes/slow.yaml")
    with pytest.raises(FileNotFoundError):
        parse("--config=elsewhere/quick.yaml")


def test_options_are_read_as_written(tmp_path):
    """Written options are those that are read again from the folder, of any other command too."""
    options = Sample(folder=str(tmp_path), count=7, rate=1e-7, flag=True)
    write_options(options, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["options.yaml"]
    assert Sample(**read_options(tmp_path / "options.yaml")) == options
    assert parse(f"--folder={tmp_path}", saved_in="folder") == options
    assert parse(f"--folder={tmp_path}", "--count=8", saved_in="folder").count == 8

    (tmp_path / "options.yaml").write_text("count: 4\nof_another_command: 1\n")
    assert parse(f"--folder={tmp_path}", saved_in="folder").count == 4


def test_damaged_options_are_refused(tmp_path):
    """Whichever bit of `options.yaml` is flipped, or end lost: never other options of a run."""
    file = tmp_path / "options.yaml"
    write_options(Sample(), tmp_path)
    content, expected = file.read_bytes(), saved_options(Sample, str(tmp_path))
    damages = [("flip", place, place % 8) for place in range(len(content))]
    damages += [("truncate", size, 0) for size in range(len(content) - 1)]
    for each in damages:
        file.write_bytes(content)
        damage(file, *each)
        with pytest.raises(ValueError, match=r"^config must .*options.yaml"):
            saved_options(Sample, str(tmp_path))
    file.write_bytes(content.partition(b"\n")[2])  # without the first line
    assert saved_options(Sample, str(tmp_path)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cuont: 3", "config must hold names of flags, got 'cuont' in"),
        ("- 3", "config must be a mapping of options, got list in"),
        ("{", "config must be a YAML file, got .*mine.yaml: "),
        ("count: 0", "count must be at least 1, got 0"),
        ("count: '3'", "count must be an integer, got '3'"),
        ("rate: !!python/name:os.system", "config must be a YAML file"),
    ],
)
def test_bad_files(tmp_path, text, message):
    """A bad file is an error that names the file or the field, the rule and the value."""
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        parse(f"--config={path}")


def fails_with(error):
    def function(options):
        raise error

    return function


CASES = {
    "value": (ValueError("count must be even"), 1, "error: count must be even\n"),
    "system": (OSError("disk full"), 1, "error: disk full\n"),
    "number": (FloatingPointError("the loss is NaN"), 1, "error: the loss is NaN\n"),
    "tensorflow": (
        tf.errors.DataLossError(None, None, "corrupt record\nat this node"),
        1,
        "error: corrupt record\n",
    ),
    "keyboard": (KeyboardInterrupt(), 130, "interrupted\n"),
}


@pytest.mark.parametrize(("error", "code", "message"), CASES.values(), ids=CASES)
def test_errors(capsys, error, code, message):
    """What ends a command is one line and an exit code."""
    assert run_command(["program"], Sample, fails_with(error), None) == code
    assert capsys.readouterr().err == message


def test_a_bad_command_line(capsys):
    """A bad command line is exit code 2, and nothing is called. With `--debug` an error is raised
    where it arose.
    """
    for error in (CASES["value"][0], CASES["tensorflow"][0]):
        with pytest.raises(type(error)):
            run_command(["program", "--debug"], Sample, fails_with(error), None)
    assert run_command(["program", "--count=0"], Sample, fails_with(AssertionError()), None) == 2
    assert capsys.readouterr().err == "error: count must be at least 1, got 0\n"


def test_help(capsys):
    """`--help` prints the text and the flags, and nothing is called; `--helpfull` the same."""
    printed = []
    for flag in ("--help", "--helpfull"):
        assert run_command(["program", flag], Sample, fails_with(AssertionError()), "Does it.") == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[0].startswith("Does it.\n")
    assert re.search(r"^  --count=N +a count", printed[0], re.MULTILINE)


@pytest.mark.slow
def test_no_last_collection():
    """At its end a command spares Python the collection of all its objects."""
    program = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 0))  # called last
from model_deploy.commands import Options, run_command
sys.exit(run_command(["command"], Options, lambda options: None, ""))
"""
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert found.stdout == b"True\n"
