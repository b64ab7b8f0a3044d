"""A launcher and a machine behind `ssh`, for which a shell of this machine stands."""

import contextlib
import sys
import time
from pathlib import Path

import pytest

from model_deploy.launch.hosts import Host
from model_deploy.launch.machine import Machine
from model_deploy.launch.ssh import Connection
from model_deploy.processes import visible_gpus

pytestmark = pytest.mark.one_mode

# What the command of `ssh` is to run there is its last argument.
_SSH = ["sh", "-c", 'for last; do :; done; eval "$last"']
_MANY = 1100


def test_a_launcher_of_many_files_hears_its_machines():
    """select(2) knows no file whose number is above 1023."""
    resource = pytest.importorskip("resource", reason="Unix")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * _MANY:
        pytest.skip(f"this process may open {hard} files, and {2 * _MANY} are needed")
    source = Path(visible_gpus.__file__).read_text(encoding="utf-8")
    far = {"must_see": [], "network": "127.0.0.0/8", "ports": None, "visible_gpus": source}
    connection = Connection(_SSH, sys.executable, silence_secs=10)
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * _MANY), hard))
        for _ in range(_MANY):
            stack.enter_context(Path("/dev/null").open())
        machine = Machine(Host("here", 1), connection, far)
        stack.callback(machine.close)
        assert machine.hello(time.monotonic() + 10)["address"]
        assert machine.answers()
