"""The full matrix of faults, role x mode x signal x moment, as a table in docs/faults.md.

python -m tests.processes.fault_matrix [part of the names of the cases]
"""

import multiprocessing
import signal
import sys
import tempfile
from pathlib import Path

from tests.processes.faults import SAVE_STEPS, STEPS, WORKERS, Case, run_case
from tests.processes.harness import ROOT

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)
MOMENTS = ("start", SAVE_STEPS + SAVE_STEPS // 2, "save", "end")
VICTIMS = {
    "asynchronous": ("worker 1", "worker 0", "ps 0", "ps 1"),
    "synchronous": ("worker 1", "worker 0", "ps 0", "ps 1"),
    "backup": ("worker 1", "worker 0"),
    "all_reduce": ("worker 1", "worker 0"),
}
# A case waits more than it computes.
_CASES_AT_ONCE = 2


def cases():
    """All cases of the matrix."""
    return [
        Case(mode, victim, number, moment)
        for mode, victims in VICTIMS.items()
        for victim in victims
        for number in SIGNALS
        for moment in MOMENTS
    ]


def run(case):
    """Runs a case; returns the seconds that it took, and what has failed or ''."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return run_case(case, Path(folder)), ""
        except Exception as error:
            print(f"{case}: {error}", file=sys.stderr, flush=True)
            return 0.0, str(error).strip().splitlines()[0]


def row(case, secs, failure):
    """The row of a case."""
    moment = f"step {case.moment}" if isinstance(case.moment, int) else case.moment
    result = f"fails: {failure[:80]}" if failure else "holds"
    columns = (case.mode, case.victim, case.signal.name, moment, result, f"{secs:.0f}")
    return f"| {' | '.join(columns)} |"


def head(num_cases, num_failures):
    """What comes before the rows."""
    return f"""# Faults

Clusters of processes on one machine (2 cores), of which one task gets a signal: SIGKILL, SIGTERM,
or SIGSTOP for 10 s. Asynchronous, synchronous and all-reduce runs have {WORKERS} workers, those
with a backup one more; all but all-reduce have 2 parameter servers. Who was killed is started
again, a worker that had made its last step excepted. What is promised is in
[cluster.md](cluster.md#when-a-task-is-lost).

| moment | when the signal comes |
|---|---|
| start | the victim has printed its first line |
| step n | the victim, or for a parameter server the chief, has made step n |
| save | the chief is writing the checkpoint of step {SAVE_STEPS}: part of a file is there |
| end | the victim, or for a parameter server the chief, has made its last step, {STEPS} |

All cases check that the run ends at exactly step {STEPS}, that the one who was killed ends by the
signal within 10 s and every other process with 0, that the newest checkpoint loads and is of step
{STEPS}, that at most one save interval ({SAVE_STEPS} steps) is lost where a parameter server is and
nothing elsewhere, that nothing is left running, and that the weights of synchronous and all-reduce
runs are those of an undisturbed run to 1e-6.

`python -m tests.processes.fault_matrix` runs the cases and writes this page. Of {num_cases} cases
{num_cases - num_failures} hold.

| mode | who | signal | moment | result | seconds |
|---|---|---|---|---|---|
"""


def main(part):
    """Runs the cases and writes the table; returns how many failed."""
    chosen = [case for case in cases() if part in str(case)]
    rows, num_failures = [], 0
    with multiprocessing.get_context("spawn").Pool(_CASES_AT_ONCE) as pool:
        for case, (secs, failure) in zip(chosen, pool.imap(run, chosen), strict=True):
            num_failures += bool(failure)
            rows.append(row(case, secs, failure))
            print(rows[-1], flush=True)
    text = head(len(rows), num_failures) + "\n".join(rows) + "\n"
    (ROOT / "docs" / "faults.md").write_text(text)
    return num_failures


if __name__ == "__main__":
    sys.exit(min(1, main(" ".join(sys.argv[1:]))))
