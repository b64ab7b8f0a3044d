"""`HostOptions`: on which machines the tasks of a launch are, and how these are reached."""

import dataclasses
import ipaddress
import re
import shlex
import shutil
import sys

from model_deploy.commands import Options, option
from model_deploy.launch.hosts import Host, check_distinct, parse_hosts, read_hosts_file
from model_deploy.launch.ssh import Connection

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclasses.dataclass(frozen=True)
class HostOptions(Options):
    """The hosts of a launch; without any all tasks are on this machine."""

    hosts: str | None = option(
        None, "machines, reached by ssh, with how many workers each: node1:2,node2:2; or -H"
    )
    hosts_file: str | None = option(
        None,
        "file with a machine in each line, such as node1:2; elastic all-reduce heeds its changes",
    )
    ssh: str = option("ssh", "command that reaches a machine, with options of yours")
    remote_python: str | None = option(
        None, "Python on the machines, for the launcher's own part; default: this one's path"
    )
    network: str | None = option(
        None,
        "network in which tasks have their addresses, such as 10.1.0.0/16; default: the address "
        "at which ssh reaches the machine",
    )
    ports: str | None = option(
        None, "ports of tasks on the machines, such as 20000-20099; default: any that is free"
    )
    environment: str | None = option(
        None, "names of further variables that tasks on the machines get: NAME,NAME"
    )
    host_timeout: float = option(
        30.0, "seconds without a word after which a machine, or the launcher, is lost", minimum=3
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hosts is not None and self.hosts_file is not None:
            raise ValueError(f"hosts_file must be without hosts, got both, hosts={self.hosts}")
        if self.network is not None:
            try:
                ipaddress.ip_network(self.network, strict=False)
            except ValueError as error:
                raise ValueError(f"network must be as 10.1.0.0/16, got {self.network!r}") from error
        _ = self.port_range, self.variables
        if self.is_remote:
            words = shlex.split(self.ssh)
            if not words or shutil.which(words[0]) is None:
                raise ValueError(f"ssh must be a command that is installed, got {self.ssh!r}")

    @property
    def is_remote(self) -> bool:
        """Whether tasks are on machines that ssh reaches."""
        return self.hosts is not None or self.hosts_file is not None

    def read_hosts(self) -> list[Host]:
        """The hosts.

        Raises:
          ValueError: as `parse_hosts`, `read_hosts_file` and `check_distinct`.
          OSError: if the file cannot be read.
        """
        if self.hosts_file is not None:
            return read_hosts_file(self.hosts_file)
        hosts = parse_hosts(self.hosts or "")
        check_distinct("-H", hosts)
        return hosts

    @property
    def connection(self) -> Connection:
        """How the hosts are reached."""
        python = self.remote_python or sys.executable
        return Connection(shlex.split(self.ssh), python, self.host_timeout, self.variables)

    @property
    def port_range(self) -> tuple[int, int]:
        """The first and the last port of tasks; zeros for any."""
        if self.ports is None:
            return 0, 0
        first, _, last = self.ports.partition("-")
        numbers = [int(each) if each.isdecimal() else 0 for each in (first, last)]
        if not 1024 <= numbers[0] <= numbers[1] <= 65535:
            raise ValueError(
                f"ports must be a range from 1024 to 65535, as 20000-20099, got {self.ports!r}"
            )
        return numbers[0], numbers[1]

    @property
    def variables(self) -> list[str]:
        """Names of the further variables that tasks get."""
        names = self.environment.split(",") if self.environment else []
        for name in names:
            if not _NAME.fullmatch(name):
                raise ValueError(f"environment must be names of variables, got {name!r}")
        return names
