"""The launcher's command line: its own flags, in the spelling of `horovodrun` too, and the command.

    -np 4 python program.py

is `--num_workers=4 --nodivide_gpus -- python program.py`: programs of Horovod choose one of all
GPUs by their local rank.  With hosts there are as many workers as these have slots, or else as many
as is said.
"""

import dataclasses
import itertools
from collections.abc import Sequence

from model_deploy.launch.hosts import parse_hosts, read_hosts_file
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
        own = list(arguments[:end])
        return [*_of_slots(own), *own], list(arguments[end + 1 :])
    own = [*_of_horovod(horovod, own), *own]
    return [*_of_slots(own), *own], rest[1:] if rest[:1] == ["--"] else rest


def _of_horovod(given: dict[str, str], own: Sequence[str]) -> list[str]:
    """The launcher's flags for those of `horovodrun`."""
    hosts = parse_hosts(given["hosts"]) if "hosts" in given else []
    remote = any(not host.is_this_machine for host in hosts)
    flags = [f"--hosts={given['hosts']}"] if remote else []
    if remote and "np" not in given:
        return flags
    for argument in own:
        if argument.lstrip("-").partition("=")[0] in ("num_workers", "num_ps"):
            raise ValueError(f"-np must be without num_workers and num_ps, got {argument}")
    slots = sum(host.slots for host in hosts)
    count = _count(given["np"]) if "np" in given else slots
    if hosts and count > slots:
        raise ValueError(
            f"-np must be at most {slots}, the slots of -H {given['hosts']}, got {count}"
        )
    return [f"--num_workers={count}", "--nodivide_gpus", *flags]


def _of_slots(own: Sequence[str]) -> list[str]:
    """The number of workers that the slots of hosts ask for, where no flag does."""
    given = {}
    for argument, after in itertools.pairwise([*own, ""]):
        name, has_value, value = argument.lstrip("-").partition("=")
        given[name] = value if has_value else after
    if given.keys() & {"num_workers", "max_workers", "help", "helpfull"}:
        return []
    if "hosts" in given:
        hosts = parse_hosts(given["hosts"])
    elif "hosts_file" in given:
        hosts = read_hosts_file(given["hosts_file"])
    else:
        return []
    name = "max_workers" if "elastic" in given else "num_workers"
    return [f"--{name}={sum(host.slots for host in hosts)}"]


def _count(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise ValueError(f"-np must be an integer of at least 1, got {value!r}")
    return int(value)
