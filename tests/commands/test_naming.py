"""Errors name the flag that was typed, where the library has another name for it."""

import re

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.commands import line_of, make_folder, named_as
from model_deploy.commands.naming import message_of

pytestmark = pytest.mark.one_mode

FLAGS = {"data_dir": "dataset_dir", "num_replicas": "worker_replicas", "size must": "side must"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("data_dir must be 1, got 2", "dataset_dir must be 1, got 2"),
        ("data_dir of x must be", "dataset_dir of x must be"),
        (
            "data_dir must go with num_replicas=2, got data_dir",
            "dataset_dir must go with worker_replicas=2, got data_dir",
        ),
        ("size must be 1", "side must be 1"),
        *((other, other) for other in ("size has 1", "data_dirs must be", "the data_dir must be")),
        ("x must be, got 'a/data_dir=1'", "x must be, got 'a/data_dir=1'"),
    ],
)
def test_names(message, expected):
    """The name is changed where it names the setting; values stay as they were typed. The name that
    an inner block gives can be changed by an outer one.
    """
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"), named_as(**FLAGS):
        raise ValueError(message)
    with (
        pytest.raises(ValueError, match=r"^eval_size must be 1$"),
        named_as(train_size="eval_size"),
        named_as(size="train_size"),
    ):
        raise ValueError("size must be 1")


def test_what_names_no_argument_stays():
    """An error of another kind, or about something else, is the one that was raised."""
    for error in (OSError("data_dir is full"), UnicodeDecodeError("utf-8", b"x", 0, 1, "bad")):
        with pytest.raises(type(error)) as caught, named_as(**FLAGS):
            raise error
        assert caught.value is error


def test_errors_in_a_pipeline():
    """Of an error that TensorFlow has put the lines of a function in front of, its own words."""

    def fails(number):
        del number
        raise ValueError("size must be even, got 3")

    with pytest.raises(ValueError, match="in user code:") as caught:
        tf.data.Dataset.range(1).map(fails)
    assert message_of(caught.value) == "size must be even, got 3"
    with pytest.raises(ValueError, match=r"^side must be even, got 3$"), named_as(**FLAGS):
        tf.data.Dataset.range(1).map(fails)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no kernel\n\t [[{{node a}}]]", "no kernel"),
        ("From /job:worker/replica:0/task:1:\nthe value is bad\nmore", "the value is bad"),
        ("\n=====================\nRoot error", "Root error"),
        (
            "Graph execution error:\n\nDetected at node 'a' defined at (most recent call last):\n"
            "    File 'b'\nNode: 'a'\nit is bad\nDetected at node 'b'\nNode: 'b'\nin another error",
            "it is bad",
        ),
        (
            "Graph execution error:\n\nError in user-defined function passed to MapDataset:1 "
            "transformation with iterator: Iterator::Root::Map: no: image\n\t [[{{node a}}]]",
            "no: image",
        ),
        ("2 root error(s) found.\n  (0) NOT_FOUND: a\n  (1) NOT_FOUND: b", "(0) NOT_FOUND: a"),
        ("Graph execution error:", "Graph execution error:"),
        ("", "InternalError"),
    ],
)
def test_line_of(text, expected):
    """Of an error in a cluster the first line that says what is wrong, or else its class."""
    assert line_of(tf.errors.InternalError(None, None, text)) == expected


def test_a_folder_that_cannot_be_made(tmp_path):
    """The error names the field; a folder that is there is left as it is."""
    make_folder("log_dir", tmp_path / "a" / "b")
    make_folder("log_dir", tmp_path / "a")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    message = f"^log_dir must be a folder that can be written, got {tmp_path}/file: File exists$"
    with pytest.raises(OSError, match=message):
        make_folder("log_dir", tmp_path / "file")
