"""Reserved ports are free for the tasks, and for nobody else."""

import contextlib
import socket

import pytest

from model_deploy.cluster.network import is_port_taken
from model_deploy.launch import ReservedPorts

pytestmark = pytest.mark.one_mode


def test_ports_are_reserved():
    """Two launches at the same time get different ports; others cannot bind them."""
    with ReservedPorts(20) as first, ReservedPorts(20) as second:
        assert len({*first.numbers, *second.numbers}) == 40
        assert first.addresses[0] == f"127.0.0.1:{first.numbers[0]}"
        with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
            other.bind(("127.0.0.1", first.numbers[0]))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1"])
def test_who_asks_for_any_port_gets_another(address):
    """Reserved is a port on all addresses: a server of the launch must have it on all."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.ExitStack() as stack:
        ports = stack.enter_context(ReservedPorts(300))
        others = [stack.enter_context(socket.socket(family)) for _ in range(300)]
        for other in others:
            other.bind((address, 0))
        found = {other.getsockname()[1] for other in others}
        assert not found.intersection(ports.numbers)
        assert not any(map(is_port_taken, ports.numbers))


def test_servers_listen_on_reserved_ports():
    """A server can listen there, again after it has ended, and the port counts as free."""
    with ReservedPorts(1) as ports:
        for _ in range(2):
            assert not is_port_taken(ports.numbers[0])
            # With SO_REUSEADDR, on all addresses, as TensorFlow's.
            with socket.create_server(("", ports.numbers[0])):
                assert is_port_taken(ports.numbers[0])


def test_closed_ports_are_free():
    """After the block the ports belong to nobody."""
    with ReservedPorts(1) as ports:
        pass
    with socket.socket() as other:
        other.bind(("127.0.0.1", ports.numbers[0]))
