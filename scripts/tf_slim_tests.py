"""Runs tf-slim's own tests on top of `model_deploy.slim` and prints how many pass.

    python scripts/tf_slim_tests.py [OPTIONS_OF_PYTEST]

The tests are those inside the tf-slim that is installed.  They see TensorFlow as
tf-slim's modules do.  One of their files imports a decorator from `nose`, which does not
run on current Python: `nottest` stands in for it.  Ends with code 1 if fewer than 780 of
the 849 tests pass.
"""

import os
import re
import subprocess
import sys
import types
from collections.abc import Callable, Sequence

MINIMUM = 780
TIMEOUT_SECS = 120  # for a test of a few seconds
PACKAGES = (
    "tf_slim.layers",
    "tf_slim.ops",
    "tf_slim.data",
    "tf_slim.learning_test",
    "tf_slim.evaluation_test",
    "tf_slim.training",
    "tf_slim.losses",
)


def nottest(function: Callable[..., None]) -> Callable[..., None]:
    """Marks a function as no test, as `nose.tools.nottest` does."""
    function.__test__ = False  # type: ignore[attr-defined]
    return function


def install() -> None:
    """Readies a process for the tests; runs in each worker, as a pytest plugin."""
    import model_deploy  # noqa: F401, PLC0415 - it is its import that counts

    tools = types.ModuleType("nose.tools")
    tools.nottest = nottest  # type: ignore[attr-defined]
    sys.modules["nose"], sys.modules["nose.tools"] = types.ModuleType("nose"), tools


def run(options: Sequence[str]) -> str:
    """Runs the tests with more options of pytest; returns its last line."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join([here, os.path.dirname(here), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "tf_slim_tests", "-n", "2"]
    # Test modules are to be imported by the hook of model_deploy.slim, not by pytest's own.
    command += ["--assert=plain", "-p", "no:cacheprovider", "-c", os.devnull]
    # Some close a session without stopping its queue runners: TensorFlow may wait for ever.
    command += [f"--timeout={TIMEOUT_SECS}", "--timeout-method=thread", "--pyargs", *PACKAGES]
    command += options
    environment = {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        command,
        check=False,  # some of the tests fail
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return done.stdout.strip().splitlines()[-1]


def main() -> int:
    """Prints the counts; the exit code says whether they are enough."""
    line = run(sys.argv[1:])
    print(line)
    passed = re.search(r"(\d+) passed", line)
    return 0 if passed and int(passed.group(1)) >= MINIMUM else 1


if __name__ == "__main__":
    sys.exit(main())
else:
    install()
