"""Where the server of a task can be reached: at its address, if that is not open to the world."""

import ipaddress
import os

from absl import logging

from model_deploy.cluster import network
from model_deploy.cluster.binding import restrict_to
from model_deploy.processes import Cluster, Task

# For programs without flags of ours, such as those of Estimator and Horovod.
ALLOW_VARIABLE = "MODEL_DEPLOY_ALLOW_PUBLIC_ADDRESSES"
_HOW = f"or allow it by --allow_public_addresses or {ALLOW_VARIABLE}=1"
_RISK = "TensorFlow's servers have no authentication: whoever reaches the port can run code there"


def allows_public(cluster: Cluster) -> bool:
    """Whether the server of this process may be reached at public addresses, or at all.

    Raises:
      ValueError: if the environment variable is neither 0 nor 1.
    """
    value = os.environ.get(ALLOW_VARIABLE, "0")
    if value not in ("0", "1"):
        raise ValueError(f"{ALLOW_VARIABLE} must be 0 or 1, got {value!r}")
    return cluster.allow_public_addresses or value == "1"


def warning_of(task: Task) -> str | None:
    """A warning, if everybody can reach the address where a task listens; else None."""
    kind = network.exposure(task)
    return kind and f"{task} listens on {task.address}, which {kind}; {_RISK}"


def refusal_of(task: Task) -> str | None:
    """Why a task is not to listen on its address unless that is allowed; None if it may."""
    kind = network.exposure(task)
    return kind and (
        f"{task.job_name}_hosts[{task.task_id}] must be a loopback or private address, got "
        f"{task.address!r}, which {kind}; {_RISK}: give the address of a private network, {_HOW}"
    )


def check_address_of(cluster: Cluster) -> None:
    """Checks that this task's address is not open to the world, or that this is allowed.

    Raises:
      ValueError: naming field, rule and value, for a public address, or one that stands for all.
    """
    if allows_public(cluster):
        if warning := warning_of(cluster.own):
            logging.warning("%s", warning)
    elif refusal := refusal_of(cluster.own):
        raise ValueError(refusal)


def keep_to(cluster: Cluster, addresses: list[network.IPAddress]) -> None:
    """Keeps this task's server, which was not started yet, to its addresses.

    Where others would not reach it there, it is kept to private networks, or, if public addresses
    are allowed, listens on all; a warning says so.

    Raises:
      OSError: if the system cannot keep it to them, and public addresses are not allowed.
    """
    own, is_free = cluster.own, allows_public(cluster)
    if any(address.is_unspecified for address in addresses):
        return  # the server was given all addresses
    networks = [ipaddress.ip_network(address) for address in addresses]
    reason = _unfit(cluster, addresses)
    if reason is not None and not is_free:
        networks = [*network.PRIVATE_NETWORKS]
        _warn(own, "all private", reason)
    if reason is None or not is_free:
        try:
            restrict_to(own.port, networks)
        except OSError as error:
            reason = f"the system cannot keep it to {own.host} ({error})"
            if not is_free:
                raise OSError(
                    f"{own} must not listen on port {own.port} of all addresses of this machine, "
                    f"but {reason}; {_RISK}: run it on Linux, {_HOW}"
                ) from error
    if reason is not None and is_free:
        _warn(own, "all", reason)


def _warn(own: Task, which: str, reason: str) -> None:
    logging.warning(
        "%s listens on port %d of %s addresses of this machine: %s", own, own.port, which, reason
    )


def _unfit(cluster: Cluster, addresses: list[network.IPAddress]) -> str | None:
    """Why other tasks would not reach this one at `addresses`, None if they do."""
    own = cluster.own
    listed = ", ".join(map(str, addresses))
    if not all(network.is_local(address) for address in addresses):
        return f"{own.host} is {listed}, which is not one of them"
    # Debian maps a machine's own name to 127.0.1.1.
    by_name = own.host != "localhost" and own.host not in map(str, addresses)
    has_others = any(task.host != own.host for task in cluster.tasks)
    if by_name and has_others and all(address.is_loopback for address in addresses):
        return f"{own.host} is {listed} here, where other machines do not reach it"
    return None
