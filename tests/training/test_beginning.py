"""The time of a process belongs to the first run in it, from its start on."""

import sys
import time

import pytest

from model_deploy.training.beginning import Beginning, process_age

pytestmark = pytest.mark.one_mode


def test_first_run_has_the_time_of_the_process(monkeypatch):
    """The first run begins with the process, the next one when it asks."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # of tests of notebooks
    monkeypatch.delattr("sys.ps1", raising=False)
    beginning, age = Beginning(), process_age()
    assert 0 < age < 86400
    now = time.time()
    assert beginning.take() == pytest.approx(now - age, abs=1.0)
    assert beginning.take() >= now


def test_age_grows():
    """Half a second later a process is half a second older."""
    before, now = process_age(), time.monotonic()
    time.sleep(0.5)
    assert process_age() - before == pytest.approx(time.monotonic() - now, abs=0.1)


def test_interactive_process(monkeypatch):
    """In a shell of Python a run begins when it asks: its user may have done anything before."""
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    now = time.time()
    assert Beginning().take() >= now
