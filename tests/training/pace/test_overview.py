"""What the chief knows of all tasks, from their reports."""

import pytest

from model_deploy.cluster import Cluster
from model_deploy.training.pace.chief import Overview, shares_of
from model_deploy.training.pace.reporting import NUM_COLUMNS, Report, memory_held
from model_deploy.training.pace.spending import Spent

pytestmark = pytest.mark.one_mode

CLUSTER = Cluster(("a:1", "b:1", "c:1"))
STEP_SECS = 0.1


def report(steps, step_secs=STEP_SECS, number=None):
    """The report of a worker after some steps: half of each is input."""
    half = steps * step_secs / 2
    spent = Spent(step=steps, steps=steps, secs=2 * half, input=half, computation=half)
    return Report(number=steps if number is None else number, memory=2**20, spent=spent)


def test_rows():
    """A report comes back from its row of the table."""
    found = Report(3, 2**30, 0.5, 0.25, Spent(7, 5, 3.0, 1.0, 1.5, 0.25, 0.125, 0.125))
    assert Report.of_row(found.row()) == found
    assert len(found.row()) == NUM_COLUMNS


def _lines(overview, seconds, slow_from):
    """Steps of 0.1 s, of which worker 1 takes 0.2 s from a time on; lines with their times."""
    said, steps = [], [0.0, 0.0, 0.0]
    spent = [Spent() for _ in steps]
    for tick in range(int(seconds / STEP_SECS)):
        now = 1000 + tick * STEP_SECS
        for worker in range(3):
            secs = 0.2 if worker == 1 and now >= 1000 + slow_from else STEP_SECS
            steps[worker] += STEP_SECS / secs
            made = int(steps[worker]) - spent[worker].steps
            spent[worker] = Spent(
                int(steps[worker]),
                int(steps[worker]),
                spent[worker].secs + made * secs,
                spent[worker].input + made * secs,
            )
        overview.add([Report(tick + 1, 0, spent=each) for each in spent], now)
        while overview.lines:
            said.append((now - 1000 - slow_from, overview.lines.popleft()))
    return said


def test_a_slow_worker_is_named_soon():
    """Of asynchronous workers the one whose steps take 0.2 s is named within 20 of its steps."""
    [(secs, line)] = _lines(Overview(CLUSTER.tasks, STEP_SECS), 10, slow_from=5.0)
    assert line == "worker 1 is 2.0x slower (input)"
    assert 9 * 0.2 <= secs <= 20 * 0.2


def test_a_worker_that_is_gone_is_not_compared():
    """The others are compared without it, 10 s after its last report."""
    overview = Overview(CLUSTER.tasks, STEP_SECS)
    gone = report(5)
    for tick in range(400):
        secs = [STEP_SECS, 3 * STEP_SECS]
        others = [report(int(tick * STEP_SECS / each), each, number=tick + 1) for each in secs]
        overview.add([*others, gone], 1000 + tick * STEP_SECS)
    assert [*overview.lines] == ["worker 1 is 3.0x slower (input)"]


def test_status():
    """The status has each task's step, rate, shares and memory, and when it was heard from."""
    cluster = Cluster(("a:1", "b:1"), ("c:1", "d:1"))
    overview = Overview(cluster.tasks, STEP_SECS)
    overview.add([report(0), report(0), Report(number=1, memory=2**21), Report()], 1000.0)
    newer = [report(20), report(10, number=0), Report(number=1, memory=2**21), Report()]
    overview.add(newer, 1002.0)
    chief, worker, reachable, unreachable = overview.status("ended", 2.0, 50, 1002.0).tasks
    assert (chief.name, chief.address, chief.step) == ("worker 0 (chief)", "a:1", 20)
    assert (chief.steps_per_sec, chief.memory, chief.heard_at) == (10.0, 2**20, 1002.0)
    assert chief.shares == shares_of(report(20).spent)
    assert chief.shares["input"] == chief.shares["computation"] == 0.5
    assert worker.heard_at is None  # its report is the first one, which all have
    assert (reachable.name, reachable.heard_at, reachable.memory) == ("ps 0", 1000.0, 2**21)
    assert (unreachable.heard_at, unreachable.memory, unreachable.step) == (None, None, None)


def test_a_worker_that_was_started_again():
    """Its steps count from its start."""
    overview = Overview(CLUSTER.tasks, STEP_SECS)
    overview.add([report(100)] * 3, 1000.0)
    shown = overview.reports
    overview.add([report(110), report(110), report(4)], 1001.0)
    assert {w: each.steps for w, each in overview.since(shown).items()} == {0: 10, 1: 10, 2: 4}


def test_memory_is_that_of_the_process():
    """The memory that this process holds grows by 64 MB that it fills."""
    before = memory_held()
    filled = bytearray(b"x") * 64_000_000
    assert memory_held() - before > len(filled) / 2


def test_shares_of_nothing():
    """A worker that has spent no time has no shares."""
    assert shares_of(Spent()) is None
