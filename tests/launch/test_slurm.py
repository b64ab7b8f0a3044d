"""The job scripts of docs/slurm.md work as they are, on a real SLURM of one machine."""

import os
import re
import subprocess
import sys
import time

import pytest

from scripts import slurm
from tests.processes.forking import ROOT

pytestmark = [
    pytest.mark.one_mode,
    pytest.mark.skipif(slurm.missing() is not None, reason=str(slurm.missing())),
]

SCRIPTS = re.findall(r"```bash\n(#!.*?)```", (ROOT / "docs" / "slurm.md").read_text(), re.DOTALL)
# In the place of training: saves when it is told to end, and ends well the next time.
TRAINING = f"""#!{sys.executable} -ISu
import os, signal, sys, time
rank, folder = os.environ["SLURM_PROCID"], sys.argv[-2].partition("=")[2]
saved = os.path.join(folder, rank)
print("task", rank, *sys.argv[1:])
if os.path.exists(saved):
    sys.exit(print("resumed", rank))
def save(*_):
    os.makedirs(folder, exist_ok=True)
    open(saved, "w").close()
    print("saved", rank)
    sys.exit(143)
if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
    signal.signal(signal.SIGTERM, save)
print("begun", rank)
end = time.monotonic() + 60
while time.monotonic() < end and (rank != "0" or not os.path.exists(os.path.join(folder, "1"))):
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Runs a command in a SLURM of two nodes; returns what it prints."""
    with slurm.one_machine(tmp_path_factory.mktemp("slurm"), 2) as within:

        def run(folder, *command, **env):
            done = subprocess.run(
                [*within, *command],
                cwd=folder,
                env={**os.environ, **env},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        yield run


def _programs(folder, training):
    """A PATH in which training is another program, and who sleeps does so for a moment."""
    for name, text in (
        ("train_image_classifier", training),
        ("sleep", "#!/bin/bash\n/bin/sleep 1"),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def _wait_for(log, pattern, count):
    deadline = time.monotonic() + 60
    while len(re.findall(pattern, text := log.read_text() if log.exists() else "")) < count:
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
    return text


@pytest.mark.parametrize(
    ("script", "workers", "num_ps"), [(0, ("0", "1"), 0), (1, ("1", "2", "3"), 1), (2, ("0",), 0)]
)
def test_requeue(script, workers, num_ps, cluster, tmp_path):
    """At the signal workers save and end, the job waits in the queue, and they go on."""
    (tmp_path / "job.sh").write_text(SCRIPTS[script])
    path = _programs(tmp_path, TRAINING)
    array = ["--array=7"] if "--array" in SCRIPTS[script] else []
    job = cluster(tmp_path, "sbatch", "--parsable", *array, "job.sh", PATH=path).strip()
    [name] = re.findall("--job-name=(.*)", SCRIPTS[script])
    log = tmp_path / f"{name}-{job}{'_7' if array else ''}.log"
    _wait_for(log, "begun", len(workers) + num_ps)
    cluster(tmp_path, "scancel", "--batch", "--signal=USR1", job)
    text = _wait_for(log, "resumed", len(workers))
    for word in ("saved", "resumed"):
        assert sorted(re.findall(rf"{word} (\d)", text)) == list(workers)
    assert ("--seed=7" in text) == bool(array)
    while cluster(tmp_path, "squeue", "--noheader", f"--jobs={job}"):
        time.sleep(0.2)
