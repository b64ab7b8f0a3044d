"""Steps on paper: numbers that a reader can redo, and laws over the ways to train."""

import dataclasses

import pytest

from model_deploy import plan
from model_deploy.plan import Link, Load, Way, formulas

pytestmark = pytest.mark.one_mode

# A link that carries 100 bytes of tensors per second.
LINK = Link(100 * 1514 / 1448, latency_secs=0.0)
TEN_LAYERS = Load((10.0,) * 10, computation_secs=0.0)


def _secs(way, load=TEN_LAYERS, link=LINK):
    return plan.step(way, load, link).secs


@pytest.mark.parametrize(("workers", "secs"), [(2, 1.0), (4, 1.5), (64, 126 / 64)])
def test_a_ring_sends_each_gradient_almost_twice(workers, secs):
    """2 (n - 1) / n of 100 bytes at 100 bytes/s, whatever the number of workers; one by itself
    sends nothing.
    """
    load = dataclasses.replace(TEN_LAYERS, computation_secs=3.0)
    assert plan.step(Way("all_reduce", 1), load, LINK) == plan.Step(3.0, 0.0, "none", 0.0, 0.0)
    found = plan.step(Way("all_reduce", workers), TEN_LAYERS, LINK)
    assert found.secs == pytest.approx(secs)
    assert found.wire_secs == pytest.approx(secs)
    assert found.worker_bytes == pytest.approx(100 * secs)
    assert found.link == "worker"


@pytest.mark.parametrize(("ps", "secs"), [(1, 8.0), (2, 4.0), (5, 2.0)])
def test_synchronous_servers_send_and_receive_all_for_each_worker(ps, secs):
    """100 bytes / ps go to 4 workers and come back; with 5 the workers' own links are the limit."""
    found = plan.step(Way("synchronous", 4, ps), TEN_LAYERS, LINK)
    assert found.secs == pytest.approx(secs)
    assert found.wire_secs == pytest.approx(secs)
    assert found.link == ("worker" if ps == 5 else "parameter server")
    assert (found.worker_bytes, found.ps_bytes) == (100, pytest.approx(400 / ps))


def test_asynchronous_workers_are_between_two_limits():
    """Of 4, in step 8 s and apart at least 4 s, 0.3 of the way: 6.8 s; of one 2 s."""
    assert _secs(Way("asynchronous", 4, 1)) == pytest.approx(8.0 - formulas.APART * 4.0)
    assert _secs(Way("asynchronous", 1, 1)) == pytest.approx(2.0)


def test_gradients_leave_while_others_are_computed():
    """A second of computation: a third of it, and a layer, before the first gradient leaves.

    All are one pack here, which leaves when the last gradient is there; of packs of their own
    the wire has sent nine when the last one comes.
    """
    load = dataclasses.replace(TEN_LAYERS, computation_secs=1.5)
    assert _secs(Way("all_reduce", 2), load) == pytest.approx(1.5 + 1.0)
    large = Load((3 << 20,) * 10, 1.5)
    wire = Link((30 << 20) * 1514 / 1448, latency_secs=0.0)  # a second for all of them
    assert _secs(Way("all_reduce", 2), large, wire) == pytest.approx(0.5 + 0.1 + 1.0)


def test_a_third_is_left_to_the_next_step():
    """As long as it computes the wire takes: plain steps 1.4 times that, rotated ones 1.17 times.

    Layers of 1/30 s forward and 2/30 backward, packs of 3/30. Left are those of layers 2, 5 and 8,
    the first of which layer 2 waits for, by 1/30. Of the others the last seven are sent from 13/30
    on, which would take until 34/30; but the link waits once, for that of layer 7, by 1/30.
    """
    load = Load((3 << 20,) * 10, 1.0)
    wire = Link((30 << 20) * 1514 / 1448, latency_secs=0.0)  # a second for all of them
    assert _secs(Way("all_reduce", 2), load, wire) == pytest.approx(42 / 30)
    assert _secs(Way("rotated", 2), load, wire) == pytest.approx(35 / 30)


def test_variables_come_while_others_are_used():
    """As long as it computes a worker's links take for each way: 1/10 and 1/10 stick out."""
    load = dataclasses.replace(TEN_LAYERS, computation_secs=3.0)
    # Read in 1 s, used in 1 s, of which 0.1 s after the last came; back in 2 s, and 0.1 s.
    assert _secs(Way("synchronous", 1, 1), load) == pytest.approx(1.1 + 2.0 + 0.1)
    # Rotated: all there at the begin; the last gradient goes in 0.1 s, its variable comes in 0.1 s.
    assert _secs(Way("rotated", 1, 1), load) == pytest.approx(3.0 + 0.1 + 0.1)


def test_both_directions_are_used_at_once():
    """Without computation rotated steps of servers take one direction, and a last variable's read.

    Four workers read and write 100 bytes each, which takes a server's link 4 s in each direction.
    """
    assert _secs(Way("synchronous", 4, 1)) == pytest.approx(4.0 + 4.0)
    assert _secs(Way("rotated", 4, 1)) == pytest.approx(4.0 + 0.4)


def test_the_fullest_server_counts():
    """Two servers, of which one has 90 of 100 bytes, are hardly better than one."""
    uneven = Load((90.0, 10.0), 0.0)
    assert _secs(Way("synchronous", 4, 2), uneven) == pytest.approx(2 * 4 * 0.9)
    together = dataclasses.replace(uneven, ps_of_layer=(1, 1))
    assert _secs(Way("synchronous", 4, 2), together) == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("way", "messages"),
    [(Way("all_reduce", 3), 4), (Way("synchronous", 3, 1), 4), (Way("rotated", 3, 1), 4)],
)
def test_messages_take_time(way, messages):
    """A ring of n has 2 (n - 1) of them after each other; a chief's update four."""
    late = dataclasses.replace(LINK, latency_secs=0.5)
    assert _secs(way, link=late) - _secs(way) == pytest.approx(messages * 0.5)


@pytest.mark.parametrize("load", [Load((4e6,) * 10, 0.0), Load((2e6,) * 10, 0.0, wire_share=0.5)])
def test_hundreds_of_workers_wait_for_messages(load):
    """Ten packs, four at a time: of 2 x 511 messages each, 10 / 4 times, and once for the last.

    Packs are made of 32 bits: half of the bytes takes as many messages.
    """
    found = plan.step(Way("all_reduce", 512), load, Link(1e12, 0.001))
    assert found.link == "messages"
    assert found.secs == pytest.approx(1.022 * (10 / 4 + 1))


@pytest.mark.parametrize(
    ("name", "ps"),
    [("all_reduce", 0), ("rotated", 0), ("rotated", 2), ("synchronous", 2), ("asynchronous", 2)],
)
@pytest.mark.parametrize("computation", [0.0, 1.0, 5.0])
def test_no_step_beats_its_limits(name, ps, computation):
    """A step takes at least what it computes, and at least what its wire needs."""
    for workers in (2, 3, 8, 64):
        way = Way(name, workers, ps)
        load = dataclasses.replace(TEN_LAYERS, computation_secs=computation)
        found = plan.step(way, load, LINK)
        assert found.secs >= max(computation, found.wire_secs) - 1e-9
        faster = plan.step(way, load, Link(2 * LINK.bytes_per_sec, 0.0))
        assert faster.secs <= found.secs + 1e-9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Way("ring", 2), "name must be one of all_reduce, .*, got 'ring'"),
        (lambda: Way("all_reduce", 0), "workers must be at least 1, got 0"),
        (lambda: Way("synchronous", 2), "ps must be at least 1, got 0"),
        (lambda: Link(0.0), "bytes_per_sec must be more than 0, got 0.0"),
        (lambda: Link(1.0, -1.0), "latency_secs must be at least 0, got -1.0"),
        (lambda: Link(1.0, 0.0, -1.0), "handling_secs_per_byte must be at least 0, got -1.0"),
        (
            lambda: plan.step(Way("all_reduce", 2), Load((), 1.0), LINK),
            "layer_bytes must have at least one, got none",
        ),
    ],
)
def test_what_makes_no_sense(make, message):
    """Each error names the field, the rule and the value."""
    with pytest.raises(ValueError, match=message):
        make()
