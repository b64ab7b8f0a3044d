"""The launcher's command line: its own flags, in the spelling of `horovodrun` too, and the command.

    -np 4 python program.py

is `--num_workers=4 --nodivide_gpus -- python program.py`: programs of Horovod choose one of all
GPUs by their local rank.
"""

import dataclasses
import socket
from collections.abc import Sequence

from model_deploy.launch.options import LaunchOptions

# The flags of `horovodrun` that are known here.
_OF_HOROVOD = {"np": "np", "num-proc": "np", "H": "hosts", "hosts": "hosts"}
_WITHOUT_VALUE = {"help", "helpfull", "h"} | {
    f"{prefix}{field.name}"
    for field in dataclasses.fields(LaunchOptions)
    for prefix in ("", "no")
    if field.type is bool
}


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The launcher's flags, and the command: what follows the first `--`.

    With `-np` or `-H` the command may follow without `--`.

    >>> split(["-np", "4", "--log_dir=logs", "python", "program.py", "--", "x"])
    (['--num_workers=4', '--nodivide_gpus', '--log_dir=logs'], ['python', 'program.py', '--', 'x'])

    Raises:
      ValueError: naming field, rule and value, for flags of `horovodrun` that cannot be heeded.
    """
    horovod: dict[str, str] = {}
    own: list[str] = []
    rest = list(arguments)
    while rest and rest[0] != "--" and rest[0].startswith("-"):
        argument = rest.pop(0)
        name, given, value = argument.lstrip("-").partition("=")
        if not given and name not in _WITHOUT_VALUE and rest:
            value = rest.pop(0)
            argument = f"{argument}={value}"
        if name in _OF_HOROVOD:
            horovod[_OF_HOROVOD[name]] = value
        else:
            own.append(argument)
    if not horovod:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        return list(arguments[:end]), list(arguments[end + 1 :])
    for argument in own:
        if argument.lstrip("-").partition("=")[0] in ("num_workers", "num_ps"):
            raise ValueError(f"-np must be without num_workers and num_ps, got {argument}")
    flags = [f"--num_workers={_num_workers(**horovod)}", "--nodivide_gpus", *own]
    return flags, rest[1:] if rest[:1] == ["--"] else rest


def _num_workers(np: str | None = None, hosts: str | None = None) -> int:
    """How many workers `-np` and `-H` ask for."""
    count = None if np is None else _count("-np", np, np)
    if hosts is None:
        return count or 1
    slots = sum(_slots(entry, hosts) for entry in hosts.split(","))
    if count is not None and count > slots:
        raise ValueError(f"-np must be at most {slots}, the slots of -H {hosts}, got {count}")
    return count or slots


def _slots(entry: str, hosts: str) -> int:
    """The slots of one host, which is this machine."""
    host, _, slots = entry.strip().partition(":")
    if host not in ("localhost", "127.0.0.1", socket.gethostname()):
        raise ValueError(
            f"-H must name this machine, as localhost:4, got {host!r}: workers on other machines "
            "are started there, see docs/cluster.md"
        )
    return _count("the slots of -H", slots or "1", hosts)


def _count(name: str, value: str, shown: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {shown!r}")
    return int(value)
