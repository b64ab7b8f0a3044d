"""Plans against what was measured over slow links, and kept."""

import dataclasses
import statistics

import pytest

from benchmarks import network_data
from benchmarks.network_grid import GRID, Group, Measured

pytestmark = pytest.mark.one_mode

ROWS = network_data.read()


def test_plans_are_right():
    """Within 10% of what was measured in the median, and within 25% at worst. Each way was measured
    with and without computation, on at least two numbers of workers and two rates.
    """
    errors = [abs(error) for error in network_data.errors(ROWS)]
    assert statistics.median(errors) < 0.10
    assert max(errors) < 0.25
    for way in ("all_reduce", "synchronous", "asynchronous"):
        rows = [row for row in ROWS if row.way == way]
        assert {bool(row.computation_secs) for row in rows} == {False, True}
        assert min(len({row.workers for row in rows}), len({row.megabits for row in rows})) >= 2


def test_bytes_are_those_of_the_plan():
    """What arrived by each link is what the formulas say, and at most 8% more, for messages.

    What 16 workers send at once to a server is lost in part, and sent again.
    """
    for row in ROWS:
        planned = row.planned
        again = 0.1 if row.ps and row.workers == 16 else 0.0
        moved = [(row.worker_received, planned.worker_bytes, 1.08)]
        moved.append((row.worker_sent, planned.worker_bytes, 1.08 + again))
        if row.ps:
            of_one = planned.ps_bytes / row.workers
            moved += [(row.ps_sent, of_one, 1.08), (row.ps_received, of_one, 1.08)]
        for megabytes, expected, most in moved:
            assert 1.0 <= megabytes * 1e6 / expected < most, row


def test_clones_share_a_link():
    """As many bytes cross a worker's link with two clones as with one, within a hundredth."""
    sent = {
        (row.way, row.ps, row.clones): row.worker_sent
        for row in ROWS
        if row.workers == 4 and row.megabytes == 40
    }
    pairs = [(key, sent[(*key[:2], 1)]) for key in sent if key[2] > 1]
    assert pairs
    for key, alone in pairs:
        assert sent[key] == pytest.approx(alone, rel=0.01)


def test_a_row_takes_the_place_of_an_earlier_one(tmp_path):
    """A row that is measured again is kept once, with its date; another one beside it. What is kept
    was measured by rows that the benchmark has.
    """
    assert {row.group for row in ROWS} <= set(GRID)
    path = tmp_path / "rows.json"
    first = dataclasses.replace(ROWS[0], seconds=(1.0,))
    again = dataclasses.replace(first, seconds=(2.0,))
    other = dataclasses.replace(first, megabits=first.megabits + 1)
    for row in (first, other, again):
        network_data.write(row, path)
    assert sorted(network_data.read(path), key=lambda row: row.megabits) == [again, other]
    assert path.read_text().count('"date": "20') == 2


def test_names_and_typical_times_of_rows():
    """A name says way, numbers, size, and what is not as usual. The typical time is the least of
    the rounds, but the mean where workers do not wait for each other.
    """
    assert Group("all_reduce", 4, 0, 40).name == "all_reduce-4w-40MB"
    assert Group("synchronous", 4, 2, 40, clones=2).name == "synchronous-4w-2ps-40MB-2clones"
    assert Group("all_reduce", 2, 0, 4, layers=50).name == "all_reduce-2w-4MB-50layers"
    row = dataclasses.replace(ROWS[0], seconds=(1.0, 3.0))
    assert isinstance(row, Measured)
    assert dataclasses.replace(row, way="all_reduce", ps=0).typical == 1.0
    assert dataclasses.replace(row, way="asynchronous", ps=1).typical == 2.0
