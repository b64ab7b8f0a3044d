"""The ledger attributes each moment of a run to one kind, over all its processes."""

import json
import time

import pytest

from model_deploy.runs import TimeSpent, read_time_spent, write_time_spent
from model_deploy.training import Ledger
from model_deploy.training.shown import plots
from tests.training.halving import run_halving

pytestmark = pytest.mark.one_mode


class Clock:
    """A clock that a test moves: seconds since the epoch."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


def _process(clock, folder=None):
    """The ledger of a process that begins now and, given a folder, writes the run's files."""
    ledger = Ledger(clock.now, clock)
    if folder is not None:
        ledger.keep_in(str(folder))
    return ledger


def _after(clock, secs, call, *arguments):
    """Calls a method of the ledger some seconds later."""
    clock.now += secs
    call(*arguments)


def _steps(clock, ledger, first, last, secs=1.0):
    for step in range(first, last + 1):
        _after(clock, secs, ledger.made, step)


def _known(spent):
    return {kind: pytest.approx(secs) for kind, secs in spent.secs.items() if secs > 1e-9}


def test_each_moment_counts_once():
    """Start 4 s, 10 steps of 1 s, half of it waiting for data, 2 s of saving, 3 s of evaluation."""
    clock = Clock()
    ledger = _process(clock)
    _after(clock, 3.0, ledger.spend, "start")
    _after(clock, 1.0, ledger.goes_on_from, 0)
    for step in range(1, 11):
        _after(clock, 1.0, ledger.made, step, 0.5)
    ledger.set_aside("saving", 2.0)
    with ledger.aside("evaluation"):
        clock.now += 3.0
    _after(clock, 3.0, ledger.made, 11)
    spent = ledger.spent
    expected = {"start": 4.0, "steps": 6.0, "waiting": 5.0, "saving": 2.0, "evaluation": 3.0}
    assert _known(spent) == expected
    assert spent.total == pytest.approx(clock.now - 1000.0) == 20.0
    assert spent.effective == pytest.approx(0.3)
    assert str(spent) == (
        "effective time 30.0% of 20.0 s: start 20.0%, waiting 25.0%, saving 10.0%, evaluation 15.0%"
    )


def test_more_set_aside_than_there_was():
    """Clones that wait at the same time wait no longer than the time there was."""
    clock = Clock()
    ledger = _process(clock)
    _after(clock, 2.0, ledger.made, 1, 5.0)
    assert _known(ledger.spent) == {"waiting": 2.0}


def test_restart_repeats_steps(tmp_path):
    """Killed after step 10, the run goes on from its checkpoint of step 6: steps 7 to 10 repeat."""
    clock = Clock()
    first = _process(clock, tmp_path)
    _after(clock, 2.0, first.goes_on_from, 0)
    _steps(clock, first, 1, 10)
    first.save()
    clock.now += 7.0
    second = _process(clock, tmp_path)
    _after(clock, 2.0, second.spend, "start")
    _after(clock, 1.0, second.goes_on_from, 6)
    _steps(clock, second, 7, 12)
    second.close(has_ended=True)
    spent = read_time_spent(tmp_path)
    assert _known(spent) == {
        "start": 2.0 + 2.0,
        "steps": 10.0 + 2.0,
        "down": 7.0,
        "restore": 1.0,
        "repeated": 4.0,
    }
    assert (spent.highest_step, spent.total) == (12, clock.now - 1000.0)


def test_servers_go_back():
    """Parameter servers restored from step 8 after step 10: one process repeats two steps."""
    clock = Clock()
    ledger = _process(clock)
    ledger.goes_on_from(0)
    _steps(clock, ledger, 1, 10)
    _after(clock, 5.0, ledger.spend, "waiting")
    _after(clock, 1.0, ledger.goes_on_from, 8)
    _steps(clock, ledger, 9, 12)
    assert _known(ledger.spent) == {"steps": 12.0, "waiting": 5.0, "restore": 1.0, "repeated": 2.0}


def test_reports_out_of_order():
    """Asynchronous clones report later steps before earlier ones: none of them is repeated."""
    clock = Clock()
    ledger = _process(clock)
    ledger.goes_on_from(0)
    for step in (2, 1, 4, 3):
        _after(clock, 1.0, ledger.made, step)
    assert _known(ledger.spent) == {"steps": 4.0}


def test_next_chief_goes_on_where_the_file_ends(tmp_path):
    """A chief is lost 3 s after it wrote; the worker that takes its place knows these 3 s."""
    clock = Clock()
    chief, worker = _process(clock, tmp_path), _process(clock)
    for step in range(1, 11):
        clock.now += 1.0
        worker.made(step)
        if step <= 7:
            chief.made(step)
            chief.save()
    _after(clock, 2.0, worker.spend, "waiting")
    worker.keep_in(str(tmp_path))
    _after(clock, 1.0, worker.goes_on_from, 10)
    _steps(clock, worker, 11, 12)
    worker.save()
    spent = read_time_spent(tmp_path)
    assert _known(spent) == {"steps": 12.0, "waiting": 2.0, "restore": 1.0}
    assert spent.total == clock.now - 1000.0


def test_time_after_the_end_is_no_time_of_the_run(tmp_path):
    """A run that came to its end, and goes on a day later to a further step, was not down."""
    clock = Clock()
    first = _process(clock, tmp_path)
    _steps(clock, first, 1, 5)
    first.close(has_ended=True)
    clock.now += 86400.0
    second = _process(clock, tmp_path)
    _steps(clock, second, 6, 7)
    assert _known(second.spent) == {"steps": 7.0}


def test_written_now_and_then(tmp_path):
    """Between steps the file is written every 5 s at most."""
    clock = Clock()
    ledger = _process(clock, tmp_path)
    written = []
    for step in range(1, 13):
        _after(clock, 1.0, ledger.made, step)
        ledger.save(at_once=False)
        ledger.wait()
        written.append(read_time_spent(tmp_path).highest_step)
    assert sorted(set(written)) == [1, 6, 11]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="cut off"),
        pytest.param("[]", id="a list"),
        pytest.param('{"secs": {"steps": -1.0}, "highest_step": 1, "until": 2.0}', id="old"),
        pytest.param(
            '{"secs": {"steps": -1}, "highest_step": 1, "until": 2, "has_ended": false}',
            id="negative",
        ),
    ],
)
def test_damaged_file(text, tmp_path, capsys):
    """One line says so, and the time begins anew."""
    (tmp_path / "time.json").write_text(text)
    clock = Clock()
    ledger = _process(clock, tmp_path)
    assert "the time of the run begins anew: " in capsys.readouterr().err
    _steps(clock, ledger, 1, 3)
    ledger.save()
    assert _known(read_time_spent(tmp_path)) == {"steps": 3.0}


def test_file_that_cannot_be_written(tmp_path, capsys):
    """One line says so, once, and the run goes on."""
    clock = Clock()
    ledger = _process(clock, tmp_path)
    (tmp_path / "time.json").mkdir()
    for step in range(1, 4):
        _after(clock, 1.0, ledger.made, step)
        ledger.save()
    assert capsys.readouterr().err.count("the time of the run is not kept: ") == 1


def test_file_round_trip(tmp_path):
    """What is written is read; kinds of a later version are left out."""
    spent = TimeSpent({"steps": 3.0, "saving": 1.0}, 7, 12.5, True)
    write_time_spent(tmp_path, spent)
    assert read_time_spent(tmp_path) == spent
    found = json.loads((tmp_path / "time.json").read_text())
    found["secs"]["dreaming"] = 9.0
    (tmp_path / "time.json").write_text(json.dumps(found))
    assert read_time_spent(tmp_path) == spent


def test_the_last_picture_is_saving(tmp_path, monkeypatch):
    """A run alone waits for nobody, however long its picture takes."""
    monkeypatch.setattr(plots, "plot_training", lambda *_: time.sleep(0.5))
    run_halving(tmp_path, 1)
    spent = read_time_spent(tmp_path).secs
    assert spent["saving"] >= 0.5
    assert spent.get("waiting", 0.0) < 0.5
