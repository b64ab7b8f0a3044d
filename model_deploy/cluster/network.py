"""Whether an address is one of this machine, public, taken, reachable."""

import errno
import ipaddress
import socket
from collections.abc import Sequence

from model_deploy.processes import Task

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# The loopback, and where no packet from the internet arrives: RFC 1918, 3927, 4193, 4291, 6598.
PRIVATE_NETWORKS = tuple(
    ipaddress.ip_network(text)
    for text in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
        *("169.254.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7", "fe80::/10"),
    )
)

# Enough for a task that is there to accept a connection.
CONNECT_SECS = 2.0


def resolve_host(host: str) -> list[IPAddress]:
    """The IP addresses of a host, in the order of the resolver.

    Raises:
      OSError: if its name is not known.
    """
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    texts = [str(address[0]).partition("%")[0] for *_, address in found]
    return [ipaddress.ip_address(text) for text in dict.fromkeys(texts)]


def is_local(address: IPAddress) -> bool:
    """Whether the address is one of this machine's."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.bind((str(address), 0))
    except OSError:
        return False
    return True


def is_port_taken(port: int) -> bool:
    """Whether another process listens on the port, on any address of this machine.

    TensorFlow's server needs the port on all addresses, of IPv4 and IPv6. A port that
    is merely reserved, see `model_deploy.launch.ports`, is free.
    """
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            trial.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            trial.bind(("", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return True
    return False


def connection_error(task: Task, timeout: float = CONNECT_SECS) -> OSError | None:
    """Tries to connect to a task for `timeout` seconds; returns why it could not.

    `ConnectionRefusedError` means that its machine answers, and nothing listens there.
    """
    try:
        with socket.create_connection((task.host, task.port), timeout):
            return None
    except OSError as error:
        return error


def unreachable(tasks: Sequence[Task]) -> list[Task]:
    """The tasks that accept no connection."""
    return [task for task in tasks if connection_error(task)]


def names_of(tasks: Sequence[Task]) -> str:
    """The tasks with their addresses, for a message."""
    return ", ".join(f"{task} at {task.address}" for task in tasks)


def exposure(task: Task) -> str | None:
    """What makes a task's address one that everybody can reach, None if it is not."""
    try:
        addresses = resolve_host(task.host)
    except OSError:
        return None
    if any(address.is_unspecified for address in addresses):
        return "stands for all addresses of the machine"
    if any(address.is_global for address in addresses):
        return "is a public address"
    return None
