"""`python -m model_deploy.cluster` says what it understood and what is wrong."""

import json
import socket

import pytest

from model_deploy.cluster import network
from model_deploy.cluster.__main__ import main
from model_deploy.launch import ReservedPorts

pytestmark = pytest.mark.one_mode


@pytest.fixture
def addresses():
    """Three addresses at which nobody listens."""
    with ReservedPorts(3) as ports:
        yield ports.addresses


def test_cluster_without_problems(addresses, capsys):
    """It prints each task with its address and state, and ends with 0."""
    worker, ps, other = addresses
    with socket.create_server(("127.0.0.1", 0)) as listening:
        up = f"127.0.0.1:{listening.getsockname()[1]}"
        flags = [f"--worker_hosts={other},{worker}", f"--ps_hosts={ps},{up}", "--task=1"]
        assert main(flags, {"TF_CONFIG": "{"}) == 0
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "cluster from --worker_hosts; ignored: TF_CONFIG",
        f"this process is worker 1 at {worker}",
        f"worker 0 (chief) {other} host answers, task not started",
        f"worker 1 {worker} this process, port free",
        f"ps 0 {ps} host answers, task not started",
        f"ps 1 {up} listens",
        "nothing is wrong",
    ]


def test_evaluator(addresses, capsys):
    """An evaluator is outside of the cluster, of which all tasks are other ones."""
    flags = [f"--worker_hosts={addresses[0]}", f"--ps_hosts={addresses[1]}"]
    assert main([*flags, "--job_name=evaluator"], {}) == 0
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "cluster from --worker_hosts",
        "this process is evaluator 0 outside of the cluster",
        f"worker 0 (chief) {addresses[0]} host answers, task not started",
        f"ps 0 {addresses[1]} host answers, task not started",
        "nothing is wrong",
    ]


@pytest.mark.parametrize(
    ("arguments", "environ", "line"),
    [
        (
            ["--worker_hosts=a:1", "--task=1"],
            {},
            "wrong: task must be at least 0 and less than the 1 tasks of worker_hosts, got 1",
        ),
        (
            [],
            {"TF_CONFIG": json.dumps({"cluster": {"worker": ["a"]}, "task": {}})},
            "wrong: TF_CONFIG cluster.worker[0] must be host:port, such as 10.0.0.5:2222, got 'a'",
        ),
        pytest.param(["--timeout=0"], {}, "wrong: timeout must be more than 0, got 0.0", id="rule"),
        pytest.param(["--no_such"], {}, "wrong: Unknown command line flag 'no_such'", id="flag"),
    ],
)
def test_wrong_description(arguments, environ, line, capsys):
    """What is wrong with the description is one line, and the exit status 1."""
    assert main(arguments, environ) == 1
    assert capsys.readouterr().out.splitlines() == [line]


def test_port_taken(capsys):
    """The own port being taken is wrong."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main([f"--worker_hosts=127.0.0.1:{port}"], {}) == 1
    assert (
        f"wrong: worker 0 (chief): port {port} is taken on this machine by another process"
        in capsys.readouterr().out.splitlines()
    )


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError("timed out"), "no answer in 5 s"),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "Name or service not known",
        ),
    ],
)
def test_machine_that_does_not_answer(error, reason, addresses, capsys, monkeypatch):
    """Another machine that cannot be reached is wrong, and why."""
    monkeypatch.setattr(network, "connection_error", lambda task, timeout: error)
    assert main([f"--worker_hosts={addresses[0]},h:1"], {}) == 1
    assert f"wrong: worker 1: h:1 is not reachable: {reason}" in capsys.readouterr().out


def test_own_host_unknown(capsys, monkeypatch):
    """An own address with an unknown name is wrong."""

    def fail(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert main(["--worker_hosts=h:1"], {}) == 1
    assert "wrong: worker 0 (chief): host of h:1: Name or service" in capsys.readouterr().out


def test_service_address(capsys):
    """An own address that is not this machine's may be a service's: it is mentioned."""
    with ReservedPorts(1) as ports:
        assert main([f"--worker_hosts=192.0.2.77:{ports.numbers[0]}"], {}) == 0
    assert "this process, address of another machine or a service" in capsys.readouterr().out


def test_exposed_address(capsys):
    """A wildcard address is wrong; where it is allowed, it is warned of."""
    with ReservedPorts(1) as ports:
        flag = f"--worker_hosts=0.0.0.0:{ports.numbers[0]}"
        assert main([flag], {}) == 1
        assert main([flag, "--allow_public_addresses"], {}) == 0
    refused, allowed = capsys.readouterr().out.split("cluster from")[1:]
    assert "wrong: worker_hosts[0] must be a loopback or private address, got '0.0.0." in refused
    assert "warning: worker 0 (chief) listens on 0.0.0.0:" in allowed


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "no cluster: one process"),
        (["--master=grpc://a:1"], "the server at --master=grpc://a:1"),
        (["--help"], "`python -m model_deploy.cluster`: prints the cluster as understood"),
    ],
)
def test_nothing_to_check(arguments, line, capsys):
    """Without a cluster one line says so."""
    assert main(arguments, {}) == 0
    assert capsys.readouterr().out.startswith(line)
