"""How the parameter servers learn that a run has ended."""

import contextlib
import functools
import threading

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.cluster import (
    Cluster,
    build_end_ops,
    end_servers,
    serve_until_done,
    session_config,
    signal_done,
)
from model_deploy.launch import ReservedPorts
from tests import clusters


def _address(server):
    return server.target.removeprefix("grpc://")


class Run:
    """Two workers and two ps in this process, the ps served by threads."""

    def __init__(self):
        servers = clusters.servers(2)
        workers, ps = servers["worker"], servers["ps"]
        self._targets = [each.target for each in workers]
        of_task = functools.partial(Cluster, *(list(map(_address, each)) for each in (workers, ps)))
        self._clusters = [of_task("worker", i) for i in range(2)]
        self.lines = []
        self.threads = [
            threading.Thread(
                target=serve_until_done,
                args=(server, of_task("ps", i)),
                kwargs={"report": self.lines.append},
            )
            for i, server in enumerate(ps)
        ]
        for thread in self.threads:
            thread.start()

    @contextlib.contextmanager
    def worker(self, task_id):
        """Session, ops and cluster of a worker, for `signal_done`."""
        cluster = self._clusters[task_id]
        with tf.Graph().as_default():
            ops = build_end_ops(cluster)
            config = session_config(cluster)
            with tf.Session(self._targets[task_id], config=config) as session:
                yield session, ops, cluster

    def served(self):
        """Waits for the parameter servers to end; how many have not."""
        for thread in self.threads:
            thread.join(60)
        return sum(thread.is_alive() for thread in self.threads)


@pytest.mark.slow
def test_end_of_a_run():
    """The ps go on while only a worker has ended, and end with the chief."""
    run = Run()
    with run.worker(1) as worker:
        signal_done(*worker)
    assert all(thread.is_alive() for thread in run.threads)
    lines = []
    with run.worker(0) as chief:
        signal_done(*chief, grace_secs=60, report=lines.append)
    assert run.served() == 0
    assert lines == run.lines == []


@pytest.mark.slow
@pytest.mark.one_mode
def test_end_without_a_worker():
    """A worker that is gone for good holds the end up for the grace only, and is named."""
    run = Run()
    lines = []
    with run.worker(0) as chief:
        signal_done(*chief, grace_secs=0.2, report=lines.append)
    assert run.served() == 0
    assert lines == ["the parameter servers end without worker 1"]


def test_nothing_to_end_without_ps():
    """Without parameter servers there is nothing to build or to signal."""
    cluster = Cluster(["a:1", "b:1"])
    assert build_end_ops(cluster) is None
    signal_done(None, None, cluster)


def test_only_ps_serve():
    """A worker that serves is a mistake."""
    with pytest.raises(ValueError, match="job_name must be ps to serve, got 'worker'"):
        serve_until_done(None, Cluster(["a:1"]))


def test_chief_that_never_starts():
    """A ps without a chief ends with an error after the timeout."""
    server = clusters.servers(1)["ps"][0]
    with ReservedPorts(1) as ports:
        [worker] = ports.addresses
        cluster = Cluster([worker], [_address(server)], "ps")
        lines = []
        with pytest.raises(
            TimeoutError, match=rf"got 0.3 s without worker 0 \(chief\) at {worker}"
        ):
            serve_until_done(server, cluster, start_timeout=0.3, report=lines.append)
    assert lines == [f"waiting for worker 0 (chief) at {worker}"]


class _LostSession:
    """Stands for a session that has lost a parameter server."""

    def __init__(self, session):
        self.graph, self.sess_str = session.graph, session.sess_str

    def run(self, fetches):
        """What TensorFlow does then."""
        raise tf.errors.UnavailableError(None, None, "a server is gone")


@pytest.mark.slow
@pytest.mark.one_mode
def test_servers_end_when_the_session_is_lost():
    """Each parameter server that is there hears of the end, by a session of its own if need be."""
    run = Run()
    with run.worker(0) as (session, ops, cluster):
        end_servers(_LostSession(session), ops, cluster)
    assert run.served() == 0
