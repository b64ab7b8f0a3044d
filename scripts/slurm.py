"""A SLURM of one machine, to try job scripts on; as root, with Debian's slurm-wlm and munge.

    python -m scripts.slurm NODES COMMAND ...

starts munged, slurmctld and a slurmd for each node, runs COMMAND, such as `sbatch --wait job.sh`,
and ends all of them.  Each node, n1, n2 and so on, is a network namespace of this machine, with an
address of its own; all see the same files.  Cores are oversubscribed, and jobs are not confined.
"""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import namespaces

_MEGABITS = 1000
_CPUS = 64  # that nodes are said to have
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
_PATH = f"{os.environ['PATH']}:/usr/sbin"
_SECS = 30.0

_CONFIG = """
ClusterName=one
SlurmctldHost={controller}({address})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
MpiDefault=none
KillWait=5
ReturnToService=2
AccountingStorageType=accounting_storage/none
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """What this machine lacks for `one_machine`, in a few words; None if nothing."""
    lacking = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    if lacking:
        return f"{' and '.join(lacking)} of slurm-wlm and munge must be installed"
    return namespaces.missing()


@contextlib.contextmanager
def one_machine(folder: Path, num_nodes: int) -> Iterator[Sequence[str]]:
    """A SLURM with nodes n1, n2 and so on; gives the words before a command that is to use it.

    Args:
      folder: of all its files.
      num_nodes: how many nodes.

    Raises:
      OSError: if it cannot be started; with what its daemons say.
    """
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(namespaces.slow_network(num_nodes + 1, _MEGABITS))
        config, names = folder / "slurm.conf", folder / "hosts"
        config.write_text(_config(folder, hosts))
        lines = [f"{host.address} n{i}\n" for i, host in enumerate(hosts) if i]
        names.write_text("127.0.0.1 localhost\n" + "".join(lines))
        spools = [f"spool/n{i}" for i in range(1, len(hosts))]
        for name in ("munge", "state", *spools):
            (folder / name).mkdir(mode=0o700, parents=True)
        (folder / "munge").chmod(0o711)  # or munged refuses its socket's folder
        key = folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        # Names of nodes lead to their addresses inside of their namespaces only. `ip netns exec`
        # would take /sys/fs/cgroup away, which slurmd looks for.
        script = 'mount --bind "$0" /etc/hosts && exec "$@"'
        enter = ["unshare", "--mount", "sh", "-ec", script, str(names), "env"]
        inside = [
            ["nsenter", f"--net=/run/netns/{host.within[-1]}", *enter, f"SLURM_CONF={config}"]
            for host in hosts
        ]
        log = stack.enter_context((folder / "daemons.log").open("ab"))
        munge = [f"--{each}-file={folder}/munge/{each}" for each in ("key", "pid", "log", "seed")]
        daemons = [["munged", "-F", "--force", f"--socket={folder}/munge/socket", *munge]]
        daemons += [[*inside[0], "slurmctld", "-D"]]
        daemons += [[*inside[i], "slurmd", "-D", "-N", f"n{i}"] for i in range(1, len(hosts))]
        for daemon in daemons:
            stack.callback(_end, _start(daemon, log))
        _wait_for_nodes(inside[0], num_nodes, folder)
        stack.callback(_end_jobs, inside[0])  # processes of jobs outlive the daemons
        yield inside[0]


def _config(folder: Path, hosts: Sequence[namespaces.Host]) -> str:
    nodes = [
        f"NodeName=n{i} NodeAddr={host.address} NodeHostname={socket.gethostname()} CPUs={_CPUS}\n"
        for i, host in enumerate(hosts)
        if i
    ]
    head, _, partition = _CONFIG.rpartition("PartitionName")
    text = f"{head}{''.join(nodes)}PartitionName{partition}"
    controller = socket.gethostname().partition(".")[0]
    return text.format(folder=folder, address=hosts[0].address, controller=controller)


def _start(command: Sequence[str], log: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PATH": _PATH})  # type: ignore[call-overload,no-any-return]


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_jobs(within: Sequence[str]) -> None:
    subprocess.run([*within, "scancel", "--partition=all"], check=False)
    deadline = time.monotonic() + _SECS
    while time.monotonic() < deadline:
        done = subprocess.run([*within, "squeue", "--noheader"], capture_output=True, check=False)
        if not done.stdout:
            return
        time.sleep(0.1)


def _wait_for_nodes(within: Sequence[str], count: int, folder: Path) -> None:
    deadline = time.monotonic() + _SECS
    command = [*within, "sinfo", "--noheader", "--states=idle", "--format=%D"]
    while True:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.stdout.strip() == str(count):
            return
        if time.monotonic() > deadline:
            logs = [path.read_text(errors="replace")[-1000:] for path in folder.glob("*.log")]
            raise OSError("\n".join([f"no {count} nodes in {_SECS:g} s:", done.stderr, *logs]))
        time.sleep(0.1)


def main(arguments: Sequence[str]) -> int:
    """Runs a command; returns its exit status."""
    if len(arguments) < 2 or not arguments[0].isdecimal():
        print(__doc__, file=sys.stderr)
        return 2
    if (reason := missing()) is not None:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        one_machine(Path(folder), int(arguments[0])) as within,
    ):
        return subprocess.call([*within, *arguments[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
