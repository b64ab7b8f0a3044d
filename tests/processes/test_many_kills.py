"""Workers that are killed one after the other, the short form; and how pauses are counted."""

import pytest

from tests.processes.many_kills import kill_many, pauses

pytestmark = pytest.mark.one_mode


def test_pauses():
    """A pause is the time without a step of anybody, around a kill or within a second after it."""
    logs = [
        "made 1 at 10.0\nmade 2 at 10.5\nmade 3 at 13.5\n",  # lost its world at 10.7
        "made 1 at 10.1\nmade 2 at 10.4\nmade 4 at 14.0\n",
    ]
    assert pauses([10.7, 13.6], logs) == pytest.approx([13.5 - 10.4, 14.0 - 13.5])


@pytest.mark.slow
def test_three_kills(tmp_path):
    """The run goes on each time, and ends with the weights of the undisturbed run."""
    found = kill_many(tmp_path, "all-reduce", 3, every=2.0)
    print(f"pauses: {found} s")
    assert len(found) == 3
