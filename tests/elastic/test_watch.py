"""The watch ends the steps of a world that is over, and never within an update."""

import contextlib
import socket
import time

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.cluster import Cluster, World
from model_deploy.elastic import WorldChanged, WorldWatch
from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode

FIRST = World(1, 2, {0: "127.0.0.1:1", 1: "127.0.0.1:2"})
SECOND = World(2, 2, {0: "127.0.0.1:3"})


class Session:
    """Counts how often it is closed."""

    sess_str = "grpc://a:1"

    def __init__(self):
        self.closed = 0

    def close(self):
        self.closed += 1


def _watch(read, lines, servers=None, **settings):
    options = {"all_wait": lambda: True, "stall_timeout": 100.0, "report": lines.append, **settings}
    world = FIRST if servers is None else World(1, 2, dict(enumerate(servers.worker_hosts)))
    return WorldWatch(world, world.cluster(0, servers), read, **options)


@contextlib.contextmanager
def _connected():
    """A cluster whose other tasks are sockets that listen, and a connection to its server."""
    with contextlib.ExitStack() as stack:
        listens = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        worker, ps = (f"127.0.0.1:{each.getsockname()[1]}" for each in listens)
        connection = stack.enter_context(socket.create_connection(listens[1].getsockname()))
        connection.settimeout(1.0)
        yield Cluster(("127.0.0.1:1", worker), (ps,), "worker", 0), connection


def _wait_for_error(watch):
    Processes.wait_until(lambda: watch.error is not None)


def test_no_step_begins_in_a_world_that_is_over():
    """Between two steps the next one is refused, and the session stays open."""
    worlds, session = [FIRST, FIRST, None], Session()
    with _watch(lambda: worlds.pop(0) if worlds else SECOND, []) as watch:
        watch.opened(session)
        watch.agreed()
        watch.in_step(True)
        watch.in_step(False)
        _wait_for_error(watch)
        assert isinstance(watch.error, WorldChanged)
        with pytest.raises(tf.errors.CancelledError, match="world 1 is over: there is world 2"):
            watch.in_step(True)
        time.sleep(1.0)  # longer than a step may take to end
    assert session.closed == 0


def test_step_that_waits_for_a_lost_worker():
    """It is given up soon; it can update nothing then."""
    session = Session()
    with _watch(lambda: SECOND, []) as watch:
        watch.opened(session)
        Processes.wait_until(lambda: session.closed, timeout=10.0)
        with pytest.raises(RuntimeError, match="given up before its update"):
            watch.gate()
        assert not watch.give_up()
    assert session.closed == 1


def test_update_is_not_cut_short():
    """A step that has come to its update is waited for."""
    session = Session()
    with _watch(lambda: SECOND, []) as watch:
        watch.opened(session)
        watch.gate()
        _wait_for_error(watch)
        time.sleep(1.5)
        assert session.closed == 0
        assert watch.give_up()
        watch.in_step(False)
        assert not watch.give_up()


def test_lost_worker_without_a_new_world(monkeypatch):
    """It is named while the step waits, and ends the run after `stall_timeout`."""
    monkeypatch.setattr("model_deploy.elastic.watch._REPORT_SECS", 0.1)
    lines, session = [], Session()
    with _watch(lambda: FIRST, lines, stall_timeout=0.5) as watch:
        watch.opened(session)
        _wait_for_error(watch)
        Processes.wait_until(lambda: session.closed)
    assert lines[0] == "waiting for worker 1 at 127.0.0.1:2, or for a world without"
    assert str(watch.error).startswith("stall_timeout must be long enough for a world without")


def test_stopped_run(monkeypatch):
    """A step that waits for a worker that is gone ends soon when the run is stopped."""
    monkeypatch.setattr("model_deploy.elastic.watch._STOP_SECS", 0.1)
    lines, session = [], Session()
    with _watch(lambda: FIRST, lines) as watch:
        watch.heed(lambda: True)
        watch.opened(session)
        Processes.wait_until(lambda: session.closed, timeout=10.0)
    assert lines == ["the step is given up, without worker 1 at 127.0.0.1:2"]
    assert watch.error is None
    assert watch.has_given_up


@pytest.mark.parametrize("all_wait", [False, True])
def test_step_that_is_lost(all_wait, monkeypatch):
    """Its connections are cut when all workers wait in it, and not while one of them does not."""
    monkeypatch.setattr("model_deploy.elastic.watch._REPORT_SECS", 0.1)
    lines, asked = [], []

    def ask():
        asked.append(True)
        return all_wait

    with _connected() as (servers, connection):
        options = {"stall_timeout": 0.2, "all_wait": ask}
        with _watch(lambda: FIRST, lines, servers, **options) as watch:
            watch.opened(Session())
            watch.agreed()
            for _ in range(10):
                watch.in_step(True)
                watch.in_step(False)
            watch.in_step(True)
            expected = contextlib.nullcontext() if all_wait else pytest.raises(TimeoutError)
            with expected:
                assert connection.recv(1) == b""
    assert asked
    assert len(lines) == all_wait
    assert watch.error is None


@pytest.mark.parametrize("has_begun_its_update", [False, True])
def test_lost_step_of_a_world_that_is_over(has_begun_its_update, monkeypatch):
    """One that goes on though its session is closed has its connections cut."""
    monkeypatch.setattr("model_deploy.elastic.watch._LOST_SECS", 0.1)
    lines = []
    with _connected() as (servers, connection):
        with _watch(lambda: SECOND, lines, servers) as watch:
            watch.opened(Session())
            if has_begun_its_update:
                watch.gate()
            connection.settimeout(60.0)
            assert connection.recv(1) == b""
        assert isinstance(watch.error, WorldChanged)
    [line] = lines
    assert line.startswith("the step does not end without the others: cutting 1 connections")
