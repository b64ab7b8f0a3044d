"""Programs that start in no time: forked from one process that has made the imports.

TensorFlow takes seconds of processor time to import. So a process imports it once, makes
no session and no server, and forks a child for each program, which gets arguments,
environment, log and process group of its own and ends as any program does. A launcher that is
forked forks its tasks, too, each from a guard of its own. Linux only.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import multiprocessing.connection
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from pathlib import Path

from model_deploy.commands import without_tensorflow_notices
from model_deploy.launch import guard
from nets import nets_factory

ROOT = Path(__file__).parents[2]
# What the programs import, and what training imports on its way; of rooms all names, which would
# else be imported by each child when it uses them.
_IMPORTS = (
    *("model_deploy", "model_deploy.training", "model_deploy.cluster", "model_deploy.commands"),
    *("model_deploy.checkpoints", "model_deploy.elastic", "model_deploy.image_training"),
    *("model_deploy.inputs", "model_deploy.inputs.preprocessing"),
    *("model_deploy.inputs.datasets.digits", "model_deploy.commands.yaml_values"),
    *("model_deploy.internals", "model_deploy.keras", "nets.keras_networks"),
    *("train_image_classifier", "eval_image_classifier"),
    *("keras", "tf_keras.api._v1.keras"),
    *("matplotlib.figure", "matplotlib.backends.backend_agg", "numpy.random"),
    *("tests.modes", "tests.processes.moments", "tests.processes.refusals"),
)
_SET_DEATH_SIGNAL, _SET_NAME = 1, 15  # <linux/prctl.h>
MAX_REQUEST_BYTES = 1 << 17
_PRELOAD = "LD_PRELOAD"
_LAUNCH = [sys.executable, "-m", "model_deploy.launch"]
# Of the environment: all that a test starts has its value there, or the first bytes as its name.
MARK = "MODEL_DEPLOY_TEST_RUN"
MAX_NAME_BYTES = 15


def can_be_forked(command):
    """Whether a command is `python -m module`, or that of a file, with arguments."""
    return command[0] == sys.executable and (command[1] == "-m" or command[1].endswith(".py"))


class Forked:
    """A child of the forking process, with the part of `subprocess.Popen` that tests use.

    Attributes:
      pid: its process id.
    """

    def __init__(self, lines):
        self._lines = lines
        self._status = None
        self.pid = int(lines.readline())

    def poll(self):
        """Its exit status, -n after signal n; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self._status

    def wait(self, timeout=None):
        """Waits for its end; returns its exit status, -n after signal n.

        Raises:
          subprocess.TimeoutExpired: if it goes on.
        """
        if self._status is None:
            if not multiprocessing.connection.wait([self._lines], timeout):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            # Nothing, if the forking process is gone, and with it its children.
            self._status = int(self._lines.readline() or -signal.SIGKILL)
            self._lines.close()
        return self._status

    def send_signal(self, number):
        """Sends a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def fork(command, env, log, cwd=ROOT):
    """Runs a command in a child of the forking process.

    Args:
      command: one that can be forked.
      env: its whole environment.
      log: a file open for writing, for what it prints.
      cwd: its working directory.

    Returns:
      A `Forked`.
    """
    request = json.dumps({"command": command, "env": env, "cwd": str(cwd)}).encode()
    requests, process = _requests(env.get(_PRELOAD, ""))
    reader, writer = os.pipe()
    try:
        socket.send_fds(requests, [request], [log.fileno(), writer])
    except BrokenPipeError:
        process.wait()
        process.stderr.seek(0)
        said = process.stderr.read()
        raise AssertionError(
            f"the forking process ended with {process.returncode}: {said}"
        ) from None
    finally:
        os.close(writer)
    return Forked(open(reader, encoding="ascii"))


def end_forking(libraries):
    """Ends the process that forks those whose `LD_PRELOAD` names these libraries."""
    requests, process = _requests(libraries)
    requests.close()
    process.wait()


@functools.cache
def _requests(libraries):
    """The forking process of this process, and the socket to it: it ends when that is closed.

    What it forks has the libraries that it has loaded itself.
    """
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as the process
    own_env = {"PYTHONUNBUFFERED": "1", "TF_CPP_MIN_LOG_LEVEL": "3", _PRELOAD: libraries}
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with other:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes.forking", str(other.fileno())],
            stdin=subprocess.DEVNULL,
            stderr=errors,
            cwd=ROOT,
            env={**os.environ, **own_env},
            pass_fds=[other.fileno()],
        )

    def end():
        own.close()
        process.wait()

    atexit.register(end)
    process.stderr = errors
    return own, process


class _ForkingProcess:
    """Forks on request until the other end of the socket is closed."""

    def __init__(self, requests):
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._answers = {}  # by the file descriptor of the child

    def run(self):
        """Returns the request of a child in that child, and None at the end."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._requests:
                    self._report_end(key.fileobj, key.data)
                    continue
                data, descriptors, *_ = socket.recv_fds(self._requests, MAX_REQUEST_BYTES, 2)
                if not data:
                    return None
                if self._fork(*descriptors) == 0:
                    return json.loads(data)

    def _fork(self, log, answer):
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_child(parent, log)
            os.close(answer)
            return 0
        os.close(log)
        os.write(answer, f"{pid}\n".encode())
        descriptor = os.pidfd_open(pid)
        self._answers[descriptor] = answer
        self._selector.register(descriptor, selectors.EVENT_READ, pid)
        return pid

    def _become_child(self, parent, log):
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it went before the line above
            os._exit(1)
        self._requests.close()
        self._selector.close()
        for descriptor, answer in self._answers.items():
            os.close(descriptor)
            os.close(answer)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.close(log)

    def _report_end(self, descriptor, pid):
        _, status = os.waitpid(pid, 0)
        self._selector.unregister(descriptor)
        answer = self._answers.pop(descriptor)
        with contextlib.suppress(BrokenPipeError):
            os.write(answer, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os.close(descriptor)
        os.close(answer)


class _PopenOfForks(subprocess.Popen):
    """Starts launchers, and guards of programs that can be forked, as forks of this process."""

    def __init__(self, command, *, env=None, **options):
        if command[3:4] == [guard.__file__] and can_be_forked(command[5:]):
            options["preexec_fn"] = lambda: _become(_guard, int(command[4]), command[5:], env)
        elif command[:3] == _LAUNCH:
            of_launcher = dict(os.environ) if env is None else env
            options["preexec_fn"] = lambda: _become(_run, command, of_launcher)
        super().__init__(command, env=env, **options)


def _become(run, *arguments):
    """Turns a new fork into what a function runs; does not return."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # with which `Popen` takes it for started
    _end_with(lambda: run(*arguments))


def _guard(parent, command, env):
    """Runs the guard, a fork of which becomes its command."""
    os.execvp = lambda _, command: _end_with(lambda: _run(command, env))
    sys.exit(guard.main(parent, command))


def _end_with(function):
    """Calls what ends with `sys.exit` or an error, and ends this process as Python does."""
    code = 0
    try:
        function()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


def _run(command, env):
    """Runs a command in this process, a fork."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = command[1 + (command[1] == "-m") :]
    subprocess.Popen = _PopenOfForks
    if command[1] == "-m":
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")


def _keep(modules):
    """Lets modules outlive Python's end, which would take them apart, and copy all their pages."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(list(modules.values())))
    for name in modules:
        sys.modules.pop(name, None)


def _main(descriptor):
    imported = {}
    atexit.register(_keep, imported)  # before others, so that it is called after them
    with without_tensorflow_notices():
        for name in _IMPORTS:
            module = importlib.import_module(name)
            for each in getattr(module, "__all__", ()):
                getattr(module, each)
        assert nets_factory.networks_map  # and all networks
    imported.update(sys.modules)
    del imported["__main__"]
    gc.collect()
    gc.freeze()  # a collection in a child would copy all pages
    # The threads of NumPy's libraries wait for work, which is what the warning is about.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    with socket.socket(fileno=descriptor) as requests:
        request = _ForkingProcess(requests).run()
    if request is None:
        return
    os.chdir(request["cwd"])
    name = request["env"][MARK].encode()[:MAX_NAME_BYTES]
    ctypes.CDLL(None).prctl(_SET_NAME, name, 0, 0, 0)
    _run(request["command"], request["env"])


if __name__ == "__main__":
    _main(int(sys.argv[1]))
