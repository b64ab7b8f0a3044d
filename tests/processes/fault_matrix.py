"""The full matrix of faults, role x mode x signal x moment, as a table in docs/faults.md.

python -m tests.processes.fault_matrix [part of the names of the cases]
"""

import signal
import sys
import tempfile
from pathlib import Path

from tests.processes.faults import SAVE_STEPS, STEPS, Case, run_case
from tests.processes.harness import ROOT

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)
# After the first step, between checkpoints, as one is saved, close to the end.
MOMENTS = (1, SAVE_STEPS // 2, SAVE_STEPS, STEPS - 15)
VICTIMS = {
    "asynchronous": ("worker 1", "worker 0", "ps 0", "ps 1"),
    "synchronous": ("worker 1", "worker 0", "ps 0", "ps 1"),
    "backup": ("worker 1", "worker 2"),
    "all_reduce": ("worker 1", "worker 0"),
}
HEAD = f"""# Faults

Printed by `python -m tests.processes.fault_matrix`: clusters of processes on one machine, of which
one gets a signal after a step; SIGSTOP holds for 10 s. Who is killed is started again. All
cases check that the run ends at exactly step {STEPS}, every process ends with 0, the newest
checkpoint loads, nothing is left running, and that the weights of synchronous and all-reduce runs
are those of an undisturbed run to 1e-6.

| mode | who | signal | after step | result | seconds |
|---|---|---|---|---|---|
"""


def cases():
    """All cases of the matrix."""
    return [
        Case(mode, victim, number, step)
        for mode, victims in VICTIMS.items()
        for victim in victims
        for number in SIGNALS
        for step in MOMENTS
    ]


def main(part):
    """Runs the cases and writes the table; returns how many failed."""
    rows, failures = [], 0
    for case in cases():
        if part not in str(case):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                secs, result = f"{run_case(case, Path(folder)):.0f}", "holds"
            except AssertionError as error:
                failures += 1
                secs, result = "", "fails: " + str(error).strip().splitlines()[0][:80]
        columns = (case.mode, case.victim, case.signal.name, case.step, result, secs)
        rows.append(f"| {' | '.join(map(str, columns))} |")
        print(rows[-1], flush=True)
    (ROOT / "docs" / "faults.md").write_text(HEAD + "\n".join(rows) + "\n")
    return failures


if __name__ == "__main__":
    sys.exit(min(1, main(" ".join(sys.argv[1:]))))
