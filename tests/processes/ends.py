"""How long whole launches take, one after the other: whether any of them ends late.

    python -m tests.processes.ends RUNS [WAY ...]

The slowest of many runs should take little longer than the median.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.processes.harness import LAUNCH

# Flags of the launcher, and of the program.
WAYS = {
    "asynchronous": (["--num_workers=2", "--num_ps=1"], []),
    "synchronous": (["--num_workers=2", "--num_ps=1"], ["--sync_replicas"]),
    "backup": (
        ["--num_workers=3", "--num_ps=1"],
        ["--sync_replicas", "--replicas_to_aggregate=2"],
    ),
    "all_reduce": (["--num_workers=2"], ["--all_reduce"]),
}
PROGRAM = [sys.executable, "-m", "train_image_classifier", "--max_number_of_steps=100"]
# What a user would call late.
MOST_TIMES_MEDIAN = 1.5


def launch(way, folder):
    """Launches one run; returns its seconds and its log.

    Raises:
      RuntimeError: with the log, if it fails.
    """
    own, others = WAYS[way]
    command = [*LAUNCH, *own, f"--log_dir={folder}/logs", "--", *PROGRAM]
    began = time.monotonic()
    flags = [f"--train_dir={folder}/run", *others]
    ended = subprocess.run([*command, *flags], check=False, capture_output=True, text=True)
    secs = time.monotonic() - began
    if ended.returncode:
        raise RuntimeError(f"{way} failed with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return secs, ended.stdout


def main(arguments):
    """Prints for each way the seconds of the median and of the slowest run."""
    runs, ways = int(arguments[1]), arguments[2:] or list(WAYS)
    late = False
    for way in ways:
        found = []
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                secs, log = launch(way, Path(folder))
            found.append(secs)
            if secs > MOST_TIMES_MEDIAN * statistics.median(found):
                print(f"{way} took {secs:.1f} s:\n{log}", flush=True)
        median, slowest = statistics.median(found), max(found)
        late = late or slowest > MOST_TIMES_MEDIAN * median
        print(
            f"{way}: {runs} runs, median {median:.1f} s, slowest {slowest:.1f} s, "
            f"{slowest / median:.2f} times as long",
            flush=True,
        )
    return int(late)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
