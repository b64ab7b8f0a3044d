"""Hosts with a real `sshd` each, in network namespaces that a bridge joins; Linux, as root."""

import contextlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import namespaces
from tests.processes.harness import LAUNCH

_MEGABITS = 1000
_SSHD = "/usr/sbin/sshd"
_SERVER = """
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
MaxStartups 4:100:4
"""
_CLIENT = """
Host *
    User root
    IdentityFile {folder}/key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
"""


def missing():
    """What this machine lacks for hosts with sshd, in a few words; None if nothing."""
    lacking = [name for name in (_SSHD, "ssh", "ssh-keygen") if shutil.which(name) is None]
    return f"{' and '.join(lacking)} must be there" if lacking else namespaces.missing()


class SshHosts:
    """Hosts `node1`, `node2` and so on with sshd, and one without, where the launcher is.

    Args:
      folder: of keys and configuration.
      count: how many hosts have sshd.

    Attributes:
      hosts: `namespaces.Host` of each; the first is the launcher's, `hosts[i]` that of `node<i>`.
    """

    def __init__(self, folder, count):
        self.folder, self._count = folder, count
        self._stack = contextlib.ExitStack()
        self._servers = {}

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.hosts = stack.enter_context(namespaces.slow_network(self._count + 1, _MEGABITS))
            for name in ("key", "host_key"):
                path = self.folder / name
                generate = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
                subprocess.run(generate, check=True)
            key = (self.folder / "host_key.pub").read_text()
            (self.folder / "known_hosts").write_text(f"nodes,10.213.77.* {key}")
            (self.folder / "ssh_config").write_text(self._client())
            Path("/run/sshd").mkdir(exist_ok=True)
            for i in range(1, self._count + 1):
                stack.callback(self.stop, i)
                self.start(i)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def start(self, i, hidden=None):
        """Starts the sshd of a host; it has an empty folder in the place of a `hidden` one."""
        host = self.hosts[i]
        config = self.folder / f"sshd_config_{i}"
        config.write_text(_SERVER.format(address=host.address, folder=self.folder))
        hide = ["unshare", "--mount", "sh", "-ec", 'mount -t tmpfs none "$0" && exec "$@"']
        within = [*host.within, *([*hide, str(hidden)] if hidden else ())]
        command = [*within, _SSHD, "-D", "-e", "-f", str(config)]
        with (self.folder / f"sshd_{i}.log").open("ab") as log:
            self._servers[i] = subprocess.Popen(command, stdout=log, stderr=log)
        while not self._listens(host):
            assert self._servers[i].poll() is None, (self.folder / f"sshd_{i}.log").read_text()
            time.sleep(0.02)

    def stop(self, i):
        """Ends the sshd of a host; connections that there are stay."""
        if i in self._servers:
            self._servers[i].kill()
            self._servers.pop(i).wait()

    @contextlib.contextmanager
    def cut(self, i):
        """Takes the link of a host away for a while, without a word to anybody."""
        link = ["ip", "link", "set", self.hosts[i].interface]
        subprocess.run([*link, "down"], check=True)
        try:
            yield
        finally:
            subprocess.run([*link, "up"], check=True)

    def launch(self, *flags):
        """The command of a launcher over these hosts."""
        ssh = f"--ssh=ssh -F {self.folder / 'ssh_config'}"
        return [*self.hosts[0].within, *LAUNCH, ssh, *flags]

    def _client(self):
        names = "".join(
            f"Host node{i}\n    HostName {self.hosts[i].address}\n    HostKeyAlias nodes\n"
            for i in range(1, self._count + 1)
        )
        return names + _CLIENT.format(folder=self.folder)

    def _listens(self, host):
        probe = f"import socket; socket.create_connection(({host.address!r}, 22), 1)"
        command = [*self.hosts[0].within, sys.executable, "-I", "-S", "-c", probe]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
