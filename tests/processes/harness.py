"""Real processes under test: started with a log each, watched by its lines, signalled, ended.

    with Processes(tmp_path) as processes:
        worker = processes.start("worker-0", [sys.executable, "program.py"])
        worker.wait_for_line(r"step (\\d+)")
        worker.signal(signal.SIGKILL)
        assert worker.wait() == 128 + signal.SIGKILL
    processes.assert_no_orphan()
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from model_deploy.launch import guard

ROOT = Path(__file__).parents[2]
# All processes of one `Processes`, and all that they start, have its value in their environment.
_MARK = "MODEL_DEPLOY_TEST_RUN"
_POLL_SECS = 0.02
_PATIENCE_SECS = 120.0


class Process:
    """One process under a guard, which ends with the test however the test ends.

    Attributes:
      name: of its log file.
      log_path: what it prints, its standard error included.
    """

    def __init__(self, name, command, log_path, env):
        self.name = name
        self.log_path = log_path
        with log_path.open("ab") as log:
            self._log_start = log.tell()
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=ROOT,
            )

    @property
    def log(self):
        """What it has printed since it was started."""
        with self.log_path.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    @property
    def pid(self):
        """Its own process id, not that of the guard."""
        return int(self.wait_for_line(r"^process (\d+)$").group(1))

    @property
    def is_running(self):
        """Whether it has not ended yet."""
        return self._guard.poll() is None

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

    def signal(self, number):
        """Sends a signal to the process itself, as somebody outside would."""
        os.kill(self.pid, number)

    def wait(self, timeout=_PATIENCE_SECS):
        """Waits for its end; returns its exit status, 128 + n after signal n.

        Raises:
          AssertionError: with the log, if it goes on.
        """
        try:
            return self._guard.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end in {timeout} s:\n{self.log}") from None

    def end(self):
        """Kills it and all that it started."""
        if self.is_running:
            self._guard.send_signal(signal.SIGHUP)
        self._guard.wait()


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
        own = {_MARK: self._mark, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
        self._env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **own, **env}
        self._started = []

    def start(self, name, command, **env):
        """Starts a process; again under the same name it goes on in the same log."""
        path = self.log_dir / f"{name}.log"
        process = Process(name, command, path, {**self._env, **env})
        self._started.append(process)
        return process

    def living(self):
        """Ids of the processes that were started here, or by those, and live."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                marked = f"{_MARK}={self._mark}".encode() in (path / "environ").read_bytes()
                if marked and "State:\tZ" not in (path / "status").read_text():
                    found.append(int(path.name))
        return found

    def assert_no_orphan(self, timeout=5.0):
        """Waits until nothing lives that was started here.

        Raises:
          AssertionError: with the command lines of what still lives after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while living := self.living():
            assert time.monotonic() < deadline, f"still alive: {[_command(pid) for pid in living]}"
            time.sleep(_POLL_SECS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._started:
            process.end()


def _command(pid):
    with contextlib.suppress(OSError):
        return f"{pid}: " + Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " ")
    return str(pid)
