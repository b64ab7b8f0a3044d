"""Files that cannot be written: who is told, how often, and when it is tried again."""

import errno

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.checkpoints import Storage
from model_deploy.checkpoints.storage import reason_of

pytestmark = pytest.mark.one_mode


class _Told:
    """A storage, its clock, and the lines that it has said."""

    def __init__(self):
        self.now, self.lines = 0.0, []
        self.storage = Storage(self.lines.append, lambda: self.now)

    def at(self, secs, what, error=None):
        """Tries to write something at a time."""
        self.now = secs
        with self.storage.trying(what):
            if error is not None:
                raise error


def test_one_line_a_minute():
    """A failure is said at first, then once a minute with all that fails, and its end once."""
    told, full = _Told(), OSError(errno.ENOSPC, "No space left on device")
    for secs in (0, 10, 59, 61, 100, 122):
        told.at(secs, "checkpoints", full)
    told.at(5 + 122, "events", full)
    told.at(190, "checkpoints", full)
    told.at(200, "checkpoints")
    told.at(210, "checkpoints")
    reason = "No space left on device"
    assert told.lines == [
        f"warning: checkpoints: {reason}; training goes on, it is tried again",
        f"warning: for 61 s not written: checkpoints; checkpoints: {reason}",
        f"warning: for 122 s not written: checkpoints; checkpoints: {reason}",
        f"warning: events: {reason}; training goes on, it is tried again",
        f"warning: for 190 s not written: checkpoints, events; checkpoints: {reason}",
        "checkpoints: written again, after 200 s",
    ]
    assert not told.storage.fails("checkpoints")
    assert told.storage.fails("events")


def test_it_is_tried_again_after_a_minute():
    """What fails is overdue a minute after the last try, and what works never."""
    told = _Told()
    told.at(0, "checkpoints", OSError("gone"))
    assert told.storage.reason("checkpoints") == "gone"
    found = []
    for told.now in (0, 59, 60):
        found.append(told.storage.is_overdue("checkpoints"))
    assert found == [False, False, True]
    told.at(60, "checkpoints")
    told.now = 1000
    assert not told.storage.is_overdue("checkpoints")


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("worker 1 is lost"),
        tf.errors.UnavailableError(None, None, "Socket closed"),
        KeyError("a bug"),
    ],
    ids=repr,
)
def test_other_errors_are_raised(error):
    """A lost process, and a bug, are no matter of storage."""
    told = _Told()
    with pytest.raises(type(error)):
        told.at(0, "checkpoints", error)
    assert told.lines == []


def test_reasons():
    """Of TensorFlow's many lines the reason is that behind the path of the file."""
    message = (
        "Graph execution error:\n\nDetected at node 'x' defined at (most recent call last):\n"
        "  File 'y'\nNode: 'x'\nno place: /a/b_temp/part; Disk quota exceeded\n[[x]]"
    )
    error = tf.errors.ResourceExhaustedError(None, None, message)
    assert reason_of(error, "/a/b") == "Disk quota exceeded"
    assert reason_of(error) == "no place: /a/b_temp/part; Disk quota exceeded"
    assert reason_of(OSError("one\ntwo"), "/a/b") == "one"
