"""What the network says of an address, and servers that keep to theirs."""

import contextlib
import errno
import ipaddress
import socket

import pytest

from model_deploy.cluster import network
from model_deploy.cluster.binding import restrict_to
from model_deploy.processes import Task

pytestmark = pytest.mark.one_mode

# Packets for another address are dropped: an attempt ends with this time, however long.
UNREACHED_SECS = 0.2


@contextlib.contextmanager
def _listener():
    """A socket that listens on all addresses of the machine, as TensorFlow's servers do."""
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        yield listener, listener.getsockname()[1]


@pytest.mark.parametrize(
    ("allowed", "host", "reached"),
    [
        (["127.0.0.1"], "127.0.0.1", True),
        (["127.0.0.1"], "127.0.0.2", False),
        (["127.0.0.1"], "::1", False),
        (["::1"], "::1", True),
        (["::1"], "127.0.0.1", False),
        (["127.0.0.1", "127.0.0.3", "::1"], "127.0.0.3", True),
        (["127.0.0.1", "127.0.0.3", "::1"], "::1", True),
        (["127.0.0.1", "127.0.0.3", "::1"], "127.0.0.2", False),
        (["::2", "::1", "127.0.0.1"], "::1", True),
        (["::2", "::3"], "::1", False),
        (["127.0.0.0/30"], "127.0.0.3", True),
        (["127.0.0.0/30"], "127.0.0.4", False),
        (["10.0.0.0/8", "::/127"], "::1", True),
        (["10.0.0.0/8", "fc00::/7"], "::1", False),
        (network.PRIVATE_NETWORKS, "127.0.0.2", True),
        (network.PRIVATE_NETWORKS, "::1", True),
        ([each for each in network.PRIVATE_NETWORKS if "127" not in str(each)], "127.0.0.1", False),
    ],
)
def test_restricted_listener(allowed, host, reached):
    """A listener on all addresses is reached at those only to which it was restricted."""
    with _listener() as (listener, port):
        restrict_to(port, [ipaddress.ip_network(each) for each in allowed])
        if not reached:
            with pytest.raises(TimeoutError):
                socket.create_connection((host, port), UNREACHED_SECS)
            return
        with socket.create_connection((host, port)) as client:
            accepted, _ = listener.accept()
            with accepted:
                client.sendall(b"\0" * 100_000)
                client.shutdown(socket.SHUT_WR)
                with accepted.makefile("rb") as stream:
                    assert len(stream.read()) == 100_000


def test_restriction_ends_other_connections():
    """Who was connected at another address before is cut off; others stay."""
    with contextlib.ExitStack() as stack:
        listener, port = stack.enter_context(_listener())
        clients = {}
        for host in ("127.0.0.1", "127.0.0.2", "::1"):
            clients[host] = stack.enter_context(socket.create_connection((host, port)))
            stack.enter_context(listener.accept()[0])
        restrict_to(port, [ipaddress.ip_network("127.0.0.1")])
        assert clients["127.0.0.2"].recv(1) == clients["::1"].recv(1) == b""
        clients["127.0.0.1"].setblocking(False)
        with pytest.raises(BlockingIOError):
            clients["127.0.0.1"].recv(1)


def test_nothing_to_restrict():
    """A port on which this process does not listen is an error."""
    with _listener() as (_, port):
        pass
    with pytest.raises(OSError, match=f"no socket of this process listens on port {port}"):
        restrict_to(port, [ipaddress.ip_network("127.0.0.1")])


def test_resolve_host():
    """A number stands for itself, and `localhost` for the loopback."""
    assert network.resolve_host("::1") == [ipaddress.ip_address("::1")]
    assert all(address.is_loopback for address in network.resolve_host("localhost"))


@pytest.mark.parametrize(
    ("address", "expected"), [("127.0.0.1", True), ("192.0.2.77", False), ("2001:db8::77", False)]
)
def test_local_addresses(address, expected):
    """Addresses of the loopback are this machine's, those for examples are not."""
    assert network.is_local(ipaddress.ip_address(address)) is expected


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_port_taken(host):
    """A port is taken if somebody listens there, at whichever address."""
    with socket.create_server((host, 0)) as listener:
        port = listener.getsockname()[1]
        assert network.is_port_taken(port)
    assert not network.is_port_taken(port)


def test_port_that_is_forbidden(monkeypatch):
    """Other errors than that the port is taken are passed on."""

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(PermissionError):
        network.is_port_taken(80)


@pytest.mark.parametrize(
    ("addresses", "kind"),
    [
        pytest.param(["127.0.0.1", "::1"], None, id="loopback"),
        pytest.param(["10.0.0.5"], None, id="private"),
        pytest.param(["fd00::2"], None, id="private-ipv6"),
        pytest.param(["10.0.0.5", "8.8.8.8"], "is a public address", id="public"),
        pytest.param(["2600::1"], "is a public address", id="public-ipv6"),
        pytest.param(["0.0.0.0"], "stands for all addresses of the machine", id="wildcard"),
        pytest.param(["::"], "stands for all addresses of the machine", id="wildcard-ipv6"),
    ],
)
def test_exposure(addresses, kind, monkeypatch):
    """A public or wildcard address is one that everybody can reach."""
    found = [ipaddress.ip_address(address) for address in addresses]
    monkeypatch.setattr(network, "resolve_host", lambda host: found)
    assert network.exposure(Task("ps", 0, "h:1")) == kind


@pytest.mark.parametrize(
    ("address", "private"),
    [
        *((text, True) for text in ("127.0.0.9", "10.1.2.3", "172.31.0.1", "192.168.1.1")),
        *((text, True) for text in ("100.64.0.1", "169.254.1.1", "::1", "fd00::2", "fe80::3")),
        *((text, False) for text in ("8.8.8.8", "172.32.0.1", "100.128.0.1", "2600::1")),
    ],
)
def test_private_networks(address, private):
    """An address is in one of the private networks, or Python calls it a public one."""
    found = ipaddress.ip_address(address)
    assert any(found in each for each in network.PRIVATE_NETWORKS) is private
    assert found.is_global is not private


def test_exposure_of_unknown_host(monkeypatch):
    """What has no address is exposed to nobody."""

    def fail(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert network.exposure(Task("ps", 0, "h:1")) is None
