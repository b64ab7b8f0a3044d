"""Runs one command and leaves none of its processes behind, whatever happens.

    python -I -S guard.py PARENT COMMAND ...

The guard is the command's parent.  It passes SIGTERM and SIGINT on to the command's
process group.  It ends when the command has ended, when it gets SIGHUP, or when PARENT, the
process that started it, is gone; then it kills all that descends from the command.  Should
the guard itself be killed, the kernel kills the command.  Linux only.

With MODEL_DEPLOY_CORES=0/2 in its environment, which the command does not get, the command keeps
to the first of two equal shares of the machine's cores; where there are fewer cores than shares,
several commands share one.

This file runs by itself, without the package, so that it starts in 20 ms.  Its exit
status is the command's, 128 + n after signal n.
"""

import ctypes
import os
import signal
import sys

# <linux/prctl.h>
_SET_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_FORWARDED = (signal.SIGTERM, signal.SIGINT)
_AWAITED = {*_FORWARDED, signal.SIGHUP, signal.SIGCHLD}
SHARE_OF_CORES = "MODEL_DEPLOY_CORES"
_PROCESSORS = "/sys/devices/system/cpu"


def main(parent: int, command: list[str]) -> int:
    """Runs `command` for the process `parent`; returns the exit status."""
    signal.signal(signal.SIGHUP, lambda *_: None)  # nohup has it ignored
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    adopt_orphans()
    _prctl(_SET_DEATH_SIGNAL, signal.SIGHUP)
    if os.getppid() != parent:  # it went before the line above
        return 1
    guard = os.getpid()
    if share := os.environ.pop(SHARE_OF_CORES, ""):
        keep_to_share(*map(int, share.split("/")))
    child = os.fork()
    if child == 0:
        _become(command, guard)
    status = _wait(child)
    kill_descendants()
    if status is None:
        return 128 + signal.SIGKILL
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def adopt_orphans() -> None:
    """Lets descendants of this process whose parents end become its children."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def kill_descendants() -> None:
    """Kills all descendants: the children of a killed child become children of this process."""
    while children := _children():
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for _ in children:
            os.waitpid(-1, 0)


def keep_to_share(index: int, count: int) -> None:
    """Keeps this process, and all that it starts, to one of `count` shares of the cores."""
    cores = sorted(os.sched_getaffinity(0), key=_position)
    each = len(cores) // count
    own = cores[index * each : (index + 1) * each] or [cores[index % len(cores)]]
    os.sched_setaffinity(0, own)
    print(f"cores {','.join(map(str, own))}", flush=True)


def _position(processor: int) -> tuple[int, int, int]:
    """Sorts processors by sockets, and in a socket by cores, which may have two each."""
    found = []
    for name in ("physical_package_id", "core_id"):
        try:
            with open(f"{_PROCESSORS}/cpu{processor}/topology/{name}") as file:
                found.append(int(file.read()))
        except (OSError, ValueError):  # not every container shows it
            found.append(0)
    return found[0], found[1], processor


def _become(command: list[str], guard: int) -> None:
    """Turns the forked process into the command."""
    try:
        os.setpgid(0, 0)
        _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() == guard:
            for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores some
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
            print(f"process {os.getpid()}", flush=True)
            os.execvp(command[0], command)
    except OSError as error:
        print(f"cannot start {command[0]!r}: {error.strerror}", file=sys.stderr, flush=True)
    finally:
        os._exit(127)


def _wait(child: int) -> int | None:
    """Waits for the end of `child`; returns its status, None if it must be killed."""
    while True:
        number = signal.sigwait(_AWAITED)
        if number == signal.SIGHUP:
            return None
        if number in _FORWARDED:
            _signal_group(child, number)
            continue
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                break
            if pid == child:
                return status


def _signal_group(child: int, number: int) -> None:
    try:
        os.killpg(child, number)
    except ProcessLookupError:  # it has no group yet, or is gone
        os.kill(child, number)


def _children() -> list[int]:
    own = str(os.getpid())
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                # The name of the program, in brackets, may hold anything.
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue  # gone in the meantime
        if fields[1] == own:
            found.append(int(name))
    return found


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
