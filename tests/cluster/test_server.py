"""Servers of tasks: where they listen, what they see."""

import ipaddress
import os
import socket
import threading

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.cluster import Cluster, network, session_config, start_server
from model_deploy.launch import ReservedPorts
from tests.cluster.test_network import UNREACHED_SECS

pytestmark = pytest.mark.one_mode

HOSTS = {"worker_hosts": ["a:1", "b:1"], "ps_hosts": ["c:1"]}


@pytest.mark.parametrize(
    ("cluster", "filters"),
    [
        pytest.param(Cluster(**HOSTS, task_id=1), ["/job:ps", "/job:worker/task:1"], id="worker"),
        pytest.param(Cluster(**HOSTS, job_name="ps"), ["/job:ps/task:0"], id="ps"),
        pytest.param(Cluster(HOSTS["worker_hosts"], task_id=1), [], id="without-ps"),
    ],
)
def test_session_config(cluster, filters):
    """Tasks see whom they need; ps tasks no GPU; other settings stay as given."""
    base = tf.ConfigProto(
        log_device_placement=True, device_count={"GPU": 2}, device_filters=["/job:x"]
    )
    given = base.SerializeToString(deterministic=True)
    config = session_config(cluster, base)
    assert list(config.device_filters) == filters
    assert config.log_device_placement
    assert config.device_count["GPU"] == (0 if cluster.job_name == "ps" else 2)
    assert base.SerializeToString(deterministic=True) == given
    assert list(session_config(cluster).device_filters) == filters


@pytest.mark.parametrize(
    ("ps_hosts", "is_shared"),
    [(["a:2"], True), (["a:2", "c:1"], True), (["c:1", "c:2"], False), ([], False)],
)
def test_threads_that_share_a_machine_do_not_spin(ps_hosts, is_shared):
    """Where another task is on the same host, idle threads leave it the processor."""
    config = session_config(Cluster(["a:1", "b:1"], ps_hosts))
    assert config.experimental.disable_thread_spinning == is_shared
    base = tf.ConfigProto(experimental={"disable_thread_spinning": True})
    config = session_config(Cluster(["a:1", "b:1"], ps_hosts), base)
    assert config.experimental.disable_thread_spinning


def _start(host, **others):
    with ReservedPorts(1) as ports:
        cluster = Cluster([f"{host}:{ports.numbers[0]}"], **others)
        return cluster, start_server(cluster, session_config(cluster))


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="the system has no SCHED_BATCH")
@pytest.mark.parametrize("policy", ["SCHED_OTHER", "SCHED_IDLE"])
def test_the_thread_that_waits_for_steps_gives_way(policy):
    """A thread that starts a server is of SCHED_BATCH from then on, unless it chose a policy."""
    found = []

    def start():
        os.sched_setscheduler(0, getattr(os, policy), os.sched_param(0))
        _start("127.0.0.1")
        found.append(os.sched_getscheduler(0))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert found == [os.SCHED_BATCH if policy == "SCHED_OTHER" else os.SCHED_IDLE]


def test_a_system_that_allows_no_other_policy(monkeypatch):
    """Where a container keeps the policy of threads as it is, a server starts all the same."""

    def refuse(*_):
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse, raising=False)
    monkeypatch.setattr(os, "sched_getscheduler", lambda _: os.SCHED_OTHER, raising=False)
    _, server = _start("127.0.0.1")
    assert server.target.startswith("grpc://127.0.0.1:")


def test_server_listens_on_its_address_only(caplog):
    """A server of 127.0.0.2 is not reached at 127.0.0.1; nothing is warned of."""
    cluster, server = _start("127.0.0.2")
    with pytest.raises(TimeoutError):
        socket.create_connection(("127.0.0.1", cluster.own.port), UNREACHED_SECS)
    with tf.Session(server.target, config=session_config(cluster)) as session:
        assert session.run(tf.constant(3)) == 3
    assert caplog.messages == []


ALLOWED = {"allow_public_addresses": True}


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        pytest.param("0.0.0.0", "stands for all addresses of the machine", id="wildcard"),
        pytest.param("[::]", "stands for all addresses of the machine", id="wildcard-ipv6"),
        pytest.param("8.8.8.8", "is a public address", id="public"),
    ],
)
def test_server_that_everybody_would_reach(host, kind):
    """A public or wildcard address is refused in one line that names the field and the flag."""
    with pytest.raises(ValueError, match=r"^worker_hosts\[0\] must be a loopback or priv") as found:
        _start(host)
    line = str(found.value)
    assert f"got '{host}:" in line
    assert f"which {kind}; TensorFlow's servers have no authentication" in line
    assert "--allow_public_addresses or MODEL_DEPLOY_ALLOW_PUBLIC_ADDRESSES=1" in line
    assert "\n" not in line


def test_server_on_all_addresses(caplog, monkeypatch):
    """Where the environment allows it, a wildcard address is what it says, and is warned of."""
    monkeypatch.setenv("MODEL_DEPLOY_ALLOW_PUBLIC_ADDRESSES", "1")
    cluster, _ = _start("0.0.0.0")
    for host in ("127.0.0.1", "127.0.0.2"):
        socket.create_connection((host, cluster.own.port)).close()
    [line] = caplog.messages
    assert "which stands for all addresses of the machine; TensorFlow's servers have no" in line


def test_variable_that_says_neither(monkeypatch):
    """A value of the variable other than 0 and 1 is an error."""
    monkeypatch.setenv("MODEL_DEPLOY_ALLOW_PUBLIC_ADDRESSES", "yes")
    with pytest.raises(ValueError, match="PUBLIC_ADDRESSES must be 0 or 1, got 'yes'"):
        _start("127.0.0.1")


@pytest.mark.parametrize(
    "case",
    [
        ("localhost", "192.0.2.77", ALLOWED, "which is not one of them"),
        (
            "LOCALHOST",
            "127.0.1.1",
            {"ps_hosts": ["10.0.0.5:1"]},
            "where other machines do not reach it",
        ),
    ],
)
def test_server_whose_address_others_do_not_reach(case, caplog, monkeypatch):
    """It is reached at all private addresses, or at all if that is allowed, as a line says."""
    host, address, others, reason = case
    monkeypatch.setattr(network, "resolve_host", lambda _: [ipaddress.ip_address(address)])
    cluster, _ = _start(host, **others)
    [line] = caplog.messages
    which = "all" if others == ALLOWED else "all private"
    assert line.startswith(
        f"worker 0 (chief) listens on port {cluster.own.port} of {which} addresses of this "
        f"machine: {host} is {address}"
    )
    assert line.endswith(reason)
    socket.create_connection(("127.0.0.2", cluster.own.port)).close()


def test_system_without_restriction(caplog, monkeypatch):
    """Where the system cannot keep a server to its address, only the flag lets it run."""

    def fail(*_):
        raise OSError("no such option")

    monkeypatch.setattr("model_deploy.cluster.listening.restrict_to", fail)
    reason = r"the system cannot keep it to 127.0.0.1 \(no such option\)"
    with pytest.raises(OSError, match=f"must not listen on port .* machine, but {reason}; Tensor"):
        _start("127.0.0.1")
    _start("127.0.0.1", **ALLOWED)
    [line] = caplog.messages
    assert line.endswith("the system cannot keep it to 127.0.0.1 (no such option)")


def test_port_taken():
    """A port on which somebody listens is an error that names the field."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(
            OSError, match=rf"worker_hosts\[0\] must name a free port, got '{address}'"
        ):
            start_server(Cluster([address]), tf.ConfigProto())


def test_port_taken_in_the_meantime(monkeypatch):
    """The same when somebody takes the port after the check."""
    monkeypatch.setattr(network, "is_port_taken", lambda _: False)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(OSError, match=rf"worker 0 \(chief\) could not listen on {address}"):
            start_server(Cluster([address]), tf.ConfigProto())


def test_unknown_host(monkeypatch):
    """A name that nobody knows is an error that names the field."""

    def fail(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(OSError, match=r"ps_hosts\[0\] must name a known host, got 'c:1': Name or"):
        start_server(Cluster(**HOSTS, job_name="ps"), tf.ConfigProto())
