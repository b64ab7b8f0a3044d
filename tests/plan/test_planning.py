"""Plans: which ways there are, what they cost, and which is chosen."""

import dataclasses

import pytest

from model_deploy import plan
from model_deploy.plan import Circumstances, Link, Network, Way

pytestmark = pytest.mark.one_mode

MB = 1_000_000
NETWORK = Network(
    variable_bytes=(10 * MB,) * 10,
    is_trained=(True,) * 10,
    state_bytes=200 * MB,
    activation_bytes=300 * MB,
    clones=1,
    batch_size=32,
)
FAST, SLOW = (Circumstances(Link(rate), step_secs=0.5) for rate in (1e12, 1e6))


def _rows(given, workers=4, network=NETWORK, **options):
    found = plan.plan_for(network, given, [workers], **options)
    return {row.name: row for row in found.rows}


def test_every_way_has_a_row():
    """All-reduce, and both kinds of servers in each number up to that of workers, in 32 and 16."""
    ways = ["all-reduce", "synchronous, 1 ps", "synchronous, 2 ps", "asynchronous, 1 ps"]
    wanted = [f"{way}{bits}" for way in (*ways, "asynchronous, 2 ps") for bits in ("", ", 16 bits")]
    assert list(_rows(FAST, ps=[1, 2, 8])) == wanted


def test_nothing_is_lost_on_a_link_without_limit():
    """4 workers make 4 x 32 images in half a second; computation is the limit."""
    row = _rows(dataclasses.replace(FAST, link=Link(1e15, 0.0)))["all-reduce"]
    assert row.images_per_sec == pytest.approx(256, rel=1e-3)
    assert row.efficiency == pytest.approx(1.0, rel=1e-3)
    assert row.step.link == "computation"


def test_sixteen_bits_are_half_of_the_bytes():
    """And where the wire is all, twice as many images. With one worker and one server each step
    moves all variables once each way.
    """
    row = _rows(SLOW, workers=1, ps=[1])["synchronous, 1 ps"]
    assert row.way == Way("synchronous", 1, 1)
    assert (row.step.worker_bytes, row.step.ps_bytes) == (100 * MB, 100 * MB)
    rows = _rows(SLOW)
    for name in ("all-reduce", "synchronous, 1 ps", "asynchronous, 2 ps"):
        wide, narrow = rows[name], rows[f"{name}, 16 bits"]
        assert narrow.step.worker_bytes == wide.step.worker_bytes / 2
        assert narrow.images_per_sec / wide.images_per_sec == pytest.approx(2, rel=0.02)


def test_stragglers_hold_up_those_who_wait():
    """Of two workers with a deviation of 0.1 s the slower one takes 0.1 / sqrt(pi) s longer."""
    given = dataclasses.replace(FAST, link=Link(1e15, 0.0), step_deviation=0.1)
    rows = _rows(given, workers=2)
    assert rows["all-reduce"].step.secs == pytest.approx(0.5564, rel=1e-3)
    assert rows["synchronous, 1 ps"].step.secs == pytest.approx(0.5564, rel=1e-3)
    assert rows["asynchronous, 1 ps"].step.secs == pytest.approx(0.5, rel=1e-3)


def test_failures_cost_more_with_more_machines():
    """What fails once a day each fails 64 times a day together; then saves come more often."""
    given = dataclasses.replace(FAST, secs_between_failures=24 * 3600.0)
    few, many = (_rows(given, workers)["all-reduce"] for workers in (2, 64))
    assert many.save_interval < few.save_interval
    assert many.efficiency < few.efficiency < 1
    # A lost worker stops no others where none waits.
    assert _rows(given, 64)["asynchronous, 1 ps"].efficiency > many.efficiency


def test_memory():
    """All-reduce keeps all state on each device; servers divide it among them."""
    rows = _rows(FAST)
    assert rows["all-reduce"].worker_memory == (300 + 100 + 100 + 200) * MB
    assert rows["all-reduce"].ps_memory == 0
    assert rows["asynchronous, 2 ps"].worker_memory == (300 + 100 + 100) * MB
    assert rows["asynchronous, 2 ps"].ps_memory == (200 + 100) * MB // 2
    assert rows["synchronous, 2 ps"].ps_memory == (200 + 100 + 100) * MB // 2


def test_choices():
    """On a fast link all-reduce in 32 bits is chosen: exact, and without servers; on a slow one 16
    bits win. With step times that differ by as much as their mean stale gradients are worth it.
    """
    [(row, why)] = plan.plan_for(NETWORK, FAST, [8]).choices
    assert row.name == "all-reduce"
    assert "computation is the limit" in why
    chosen = plan.plan_for(NETWORK, SLOW, [8]).choices
    why = "the most images/s; the link of a worker is the limit"
    assert [(row.name, why) for row, why in chosen] == [("all-reduce, 16 bits", why)]
    given = dataclasses.replace(FAST, step_deviation=0.4)
    [(row, _)] = plan.plan_for(NETWORK, given, [32]).choices
    assert row.way.name == "asynchronous"


def test_a_large_variable_fills_one_server():
    """In turn, or by bytes: 90 of 100 MB are on one of two servers either way. Variables that are
    not trained take turns too.
    """
    uneven = dataclasses.replace(
        NETWORK, variable_bytes=(90 * MB, 5 * MB, 5 * MB), is_trained=(True,) * 3
    )
    for strategy, fullest in (("round_robin", 95), ("balanced", 90)):
        network = dataclasses.replace(uneven, ps_strategy=strategy)
        row = _rows(SLOW, network=network)["synchronous, 2 ps"]
        assert row.step.ps_bytes == 4 * fullest * MB
    # Every second variable is an average: both servers' weights are on the first one.
    network = dataclasses.replace(
        NETWORK, variable_bytes=(MB,) * 4, is_trained=(True, False, True, False)
    )
    assert network.load(0.0, ps=2).ps_of_layer == (0, 0)
    assert network.trained_bytes == 2 * MB


def test_table_and_picture(tmp_path):
    """The table has a row for each, marks the choices and says why; a picture is drawn."""
    found = plan.plan_for(NETWORK, SLOW, [2, 8], ps=[1])
    text = plan.table(found)
    assert text.count("* all-reduce, 16 bits") == 2
    assert "8 workers: all-reduce, 16 bits (the most images/s" in text
    for name in ("rates.png", "rates.svg"):
        plan.draw(found, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(ValueError, match=r"picture must end in .png or .svg, got rates.gif"):
        plan.draw(found, "rates.gif")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Circumstances(Link(1.0), 0.0), "step_secs must be more than 0, got 0.0"),
        (lambda: Circumstances(Link(1.0), 1.0, -1.0), "step_deviation must be at least 0, got -1"),
        (lambda: plan.plan_for(NETWORK, FAST, [0]), "workers must be at least 1, got 0"),
        (lambda: plan.plan_for(NETWORK, FAST, [2], ps=[0]), "ps must be at least 1, got 0"),
        (
            lambda: plan.plan_for(NETWORK, FAST, [2], precisions=["int8"]),
            "precision must be one of float32, bfloat16, got 'int8'",
        ),
    ],
)
def test_what_makes_no_sense(make, message):
    """Each error names the field, the rule and the value."""
    with pytest.raises(ValueError, match=message):
        make()
