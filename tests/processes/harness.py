"""Real processes under test: started with a log each, watched by its lines, signalled, ended.

with Processes(tmp_path) as processes:
    worker = processes.start("worker-0", [sys.executable, "program.py"])
    worker.wait_for_line(r"step (\\d+)")
    worker.signal(signal.SIGKILL)
    assert worker.wait() == 128 + signal.SIGKILL
processes.assert_no_orphan()
"""

import collections
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from model_deploy.launch import guard
from tests.processes.forking import MARK, MAX_NAME_BYTES, ROOT, can_be_forked, fork

LAUNCH = [sys.executable, "-m", "model_deploy.launch"]

_POLL_SECS = 0.02
_IDLE_SECS = 0.5  # without any processor time
_PATIENCE_SECS = 120.0


@contextlib.contextmanager
def folder_of(kept):
    """Yields the folder of all files of a program: the given one, which is kept, or a new one."""
    with contextlib.ExitStack() as stack:
        folder = Path(kept or stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        yield folder


class Process:
    """One process, with its log.

    Args:
      name: of its log file.
      log_path: its log file.
      start: starts it, with an open file for what it prints; returns a `Popen` or `Forked`.
      guarded: whether what is started is a guard, and the process its child.

    Attributes:
      name: as given.
      log_path: what it prints, its standard error included.
    """

    def __init__(self, name, log_path, start, guarded=False):
        self.name = name
        self.log_path = log_path
        self._guarded = guarded
        with log_path.open("ab") as log:
            self._log_start = log.tell()
            self._started = start(log)

    @property
    def log(self):
        """What it has printed since it was started."""
        with self.log_path.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    @property
    def pid(self):
        """Its own process id, not that of the guard."""
        if not self._guarded:
            return self._started.pid
        return int(self.wait_for_line(r"^process (\d+)$").group(1))

    @property
    def is_running(self):
        """Whether it has not ended yet."""
        return self._started.poll() is None

    def wait_for_line(self, pattern, timeout=_PATIENCE_SECS):
        """Waits for a line in which `pattern` is found; returns the match.

        Raises:
          AssertionError: with the log, if the process ends or the time is over before that.
        """
        deadline = time.monotonic() + timeout
        while True:
            running = self.is_running  # asked first: what it printed before its end counts
            *lines, _ = self.log.split("\n")
            for line in lines:
                if match := re.search(pattern, line):
                    return match
            assert running, f"{self.name} ended without {pattern!r}:\n{self.log}"
            assert time.monotonic() < deadline, (
                f"{self.name} did not print {pattern!r} in {timeout} s:\n{self.log}"
            )
            time.sleep(_POLL_SECS)

    def signal_task(self, name, number=signal.SIGKILL):
        """Sends a signal to the newest process of a task that this launcher has started."""
        line = rf"^{name}\| process (\d+)$"
        self.wait_for_line(line)
        os.kill(int(re.findall(line, self.log, re.MULTILINE)[-1]), number)

    def signal(self, number):
        """Sends a signal to the process itself, as somebody outside would."""
        os.kill(self.pid, number)

    def signal_guard(self, number):
        """Sends a signal to its guard: SIGTERM and SIGINT are passed on, SIGHUP kills."""
        self._started.send_signal(number)

    def wait(self, timeout=_PATIENCE_SECS):
        """Waits for its end; returns its exit status, 128 + n after signal n.

        Raises:
          AssertionError: with the log, if it goes on.
        """
        try:
            status = self._started.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end in {timeout} s:\n{self.log}") from None
        return status if status >= 0 else 128 - status

    def end(self):
        """Kills it, and if it is guarded all that it started."""
        if self.is_running:
            self._started.send_signal(signal.SIGHUP if self._guarded else signal.SIGKILL)
        self._started.wait()


class Processes:
    """The processes of one test; leaving the block kills those that still run.

    Args:
      log_dir: folder for the logs, `<name>.log`.
      **env: additional environment variables.
    """

    def __init__(self, log_dir, **env):
        self.log_dir = Path(log_dir)
        self._mark = uuid.uuid4().hex
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        own = {MARK: self._mark, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
        self._env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **own, **env}
        self._started = []

    def start(self, name, command, guarded=True, forked=True, cwd=ROOT, **env):
        """Starts a process; again under the same name it goes on in the same log.

        Args:
          name: of its log.
          command: program and arguments.
          guarded: whether a guard kills what is left of it when it ends. A test of what a
            process leaves behind cannot have one, and what is forked has none.
          forked: whether a Python program, and what it launches, is spared its imports.
          cwd: its working directory.
          **env: additional environment variables.
        """
        forked = forked and can_be_forked(command)
        guarded = guarded and not forked
        guarding = [sys.executable, "-I", "-S", guard.__file__, str(os.getpid())]
        env = {**self._env, **env}

        def start(log):
            if forked:
                return fork(command, env, log, cwd)
            return subprocess.Popen(
                [*guarding, *command] if guarded else command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
            )

        process = Process(name, self.log_dir / f"{name}.log", start, guarded)
        self._started.append(process)
        return process

    def launch(self, flags, program, name="launch", **settings):
        """Starts a launcher of a program; its logs and those of its tasks are in one folder."""
        flags = [*flags, f"--log_dir={self.log_dir}"]
        return self.start(name, [*LAUNCH, *flags, "--", *program], guarded=False, **settings)

    def living(self):
        """Ids of the processes that were started here, or by those, and live."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                status = (path / "status").read_text()
                marked = f"{MARK}={self._mark}".encode() in (path / "environ").read_bytes()
                marked |= status.startswith(f"Name:\t{self._mark[:MAX_NAME_BYTES]}\n")
                if marked and "State:\tZ" not in status:
                    found.append(int(path.name))
        return found

    def assert_no_orphan(self, timeout=5.0):
        """Waits until nothing lives that was started here.

        Raises:
          AssertionError: with the command lines of what still lives after `timeout` seconds.
        """
        self.wait_until(
            lambda: not self.living(),
            timeout,
            lambda: f"still alive: {[_command(pid) for pid in self.living()]}",
        )

    @staticmethod
    def wait_until(condition, timeout=_PATIENCE_SECS, message=lambda: "it did not come true"):
        """Waits until `condition()` holds.

        Raises:
          AssertionError: with `message()` after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, message()
            time.sleep(_POLL_SECS)

    def wait_until_idle(self, *waiting):
        """Waits until processes do nothing any more but wait."""
        before, since = None, time.monotonic()
        while time.monotonic() < since + _IDLE_SECS:
            used = [Path(f"/proc/{each.pid}/stat").read_text().split()[13:15] for each in waiting]
            if used != before:
                before, since = used, time.monotonic()
            time.sleep(_POLL_SECS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._started:
            process.end()
        for pid in self.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Workers:
    """The workers of a launch, which are killed, and added, while they train.

    Args:
      folder: of all files; the program ends its pauses when the file `fast` is in it.
      process: the launcher.
    """

    def __init__(self, folder, process):
        self.folder, self.process = folder, process
        self.signal = process.signal_task

    def living(self):
        """The workers that have started, each as often as it was, and not ended since."""
        lines = r"^launch\| (worker \d+) (?:was|failed)"
        ended = collections.Counter(re.findall(lines, self.process.log, re.MULTILINE))
        started = collections.Counter(
            re.findall(r"^(worker \d+)\| process \d+$", self.process.log, re.MULTILINE)
        )
        return list(started - ended)

    def add(self):
        """Asks for one more."""
        self.process.signal(signal.SIGUSR1)

    def end(self):
        """Lets steps be fast, and waits for the end."""
        (self.folder / "fast").touch()
        assert self.process.wait() == 0, self.process.log


class Tasks(dict):
    """Tasks of a cluster by their names, such as `worker 1`, to be started one by one.

    Args:
      processes: starts them.
      addresses: `host:port` of the workers, then of the parameter servers.
      num_ps: how many of these there are.
      program: the command of all, with its flags; it gets those of its place, too.
    """

    def __init__(self, processes, addresses, num_ps, program):
        super().__init__()
        count = len(addresses) - num_ps
        hosts = {"worker": addresses[:count], "ps": addresses[count:]}
        self.address_of = {f"{job} {i}": at for job in hosts for i, at in enumerate(hosts[job])}
        flags = [f"--{job}_hosts={','.join(hosts[job])}" for job in hosts]
        self._processes, self._command = processes, [*program, *flags]

    def start(self, name, *flags, within=()):
        """Starts one, or starts it again, with some words before its command; its `Process`."""
        job, task = name.split()
        command = [*within, *self._command, f"--job_name={job}", f"--task_id={task}", *flags]
        self[name] = self._processes.start(name.replace(" ", "-"), command)
        return self[name]

    def wait(self):
        """Waits for the end of all; their exit statuses."""
        return [process.wait() for process in self.values()]


def _command(pid):
    with contextlib.suppress(OSError):
        return f"{pid}: " + Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " ")
    return str(pid)
