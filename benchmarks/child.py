"""Contenders in processes of their own, each of which measures a round when it is told to.

`Child("benchmarks.keras_peer", "serve", network="tiny")` starts a process that calls that
function with a `Requests` and the arguments.  While it is not asked it waits at its pipe and
takes no processor time, so that the rounds of several children can alternate.
"""

import contextlib
import importlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


class Requests:
    """The child's end: iterating gives an item for each measurement that is asked for.

    Attributes:
      words: those of the last request.
    """

    words = ""

    def __init__(self) -> None:
        # Libraries print; only answers may go to the pipe.
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def ready(self) -> None:
        """Says that everything is built and the first step is done."""
        self.answer({})

    def wait(self) -> bool:
        """Waits for a request; False when there are no more."""
        line = sys.stdin.readline()
        self.words = line.strip()
        return bool(line)

    def __iter__(self) -> Iterator[None]:
        while self.wait():
            yield

    def answer(self, measured: Mapping[str, float]) -> None:
        """Sends the result of a measurement, and "peak MB", the most memory used so far."""
        self._answers.write(json.dumps({"peak MB": _peak_megabytes(), **measured}) + "\n")
        self._answers.flush()

    def serve(self, measure: Callable[[], Mapping[str, float]]) -> None:
        """Answers each request by a measurement."""
        self.ready()
        for _ in self:
            self.answer(measure())


def _peak_megabytes() -> float:
    # Not `ru_maxrss`, which begins with the size that the parent had when it started this process.
    status = pathlib.Path("/proc/self/status").read_text()
    [peak] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peak.split()[1]) / 1024


def use_cores(number: int) -> None:
    """Keeps this process, and those that it starts, to so many of its processors."""
    os.sched_setaffinity(0, set(itertools.islice(sorted(os.sched_getaffinity(0)), number)))


class Child:
    """The parent's end of a process that measures.

    Args:
      module: where the function is.
      function: called in the process with a `Requests` and `arguments`.
      within: words before the command, such as those that run it in a network namespace.
      **arguments: what JSON can hold.
    """

    def __init__(
        self, module: str, function: str, *, within: Sequence[str] = (), **arguments: Any
    ) -> None:
        self._name = f"{module}.{function}({arguments})"
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by close()
        command = [*within, sys.executable, "-m", "benchmarks.child", module, function]
        self._began = time.perf_counter()
        self._process = subprocess.Popen(
            [*command, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ},
        )

    def wait_until_ready(self) -> dict[str, float]:
        """Waits for the end of the first step.

        Returns:
          "seconds" since the process was started, and "peak MB" of its memory.
        """
        ready = self.receive()
        return {"seconds": time.perf_counter() - self._began, **ready}

    def ask(self) -> dict[str, float]:
        """One measurement."""
        self.send()
        return self.receive()

    def send(self, words: str = "") -> None:
        """Asks for a measurement without waiting for it; `words` are one line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{words}\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, float]:
        """Waits for an answer.

        Raises:
          RuntimeError: with the end of what it printed, if the process ends instead.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise RuntimeError(f"{self._name} ended:\n{self._errors.read()[-2000:]}")
        answer: dict[str, float] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ends the process: it has nothing to save."""
        self._process.kill()
        with self._process:
            pass
        self._errors.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def measure_in_new_process(module: str, function: str, **arguments: Any) -> dict[str, float]:
    """One measurement by a process that ends after it."""
    with Child(module, function, **arguments) as child:
        child.wait_until_ready()
        return child.ask()


def start_child(
    stack: contextlib.ExitStack, module: str, function: str, **arguments: Any
) -> Callable[[], dict[str, float]]:
    """The measure of a child that is ready, and that the stack will close."""
    child = stack.enter_context(Child(module, function, **arguments))
    child.wait_until_ready()
    return child.ask


if __name__ == "__main__":
    getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(
        Requests(), **json.loads(sys.argv[3])
    )
