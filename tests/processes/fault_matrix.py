"""The full matrix of faults, role x mode x signal x moment, as a table in docs/faults.md.

python -m tests.processes.fault_matrix [part of the names of the cases]

With a part of the names only these cases are run, and the rows of others stay what they are.
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
    "backup": ("worker 1", "worker 0", "ps 0", "ps 1"),
    "all_reduce": ("worker 1", "worker 0"),
}
PAGE = ROOT / "docs" / "faults.md"
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


def columns(case):
    """The columns that tell a case from others."""
    moment = f"step {case.moment}" if isinstance(case.moment, int) else case.moment
    return f"| {case.mode} | {case.victim} | {case.signal.name} | {moment} |"


def row(case, secs, failure):
    """The row of a case."""
    result = f"fails: {failure[:80]}" if failure else "holds"
    return f"{columns(case)} {result} | {secs:.0f} |"


def rows_before():
    """The rows of the page as it is, by their cases."""
    lines = PAGE.read_text().splitlines() if PAGE.exists() else []
    return {case: line for case in cases() for line in lines if line.startswith(columns(case))}


def head(lines):
    """What comes before these rows."""
    num_holding = sum("| holds |" in line for line in lines)
    return f"""# Faults

What becomes of a run of which one process is killed or stopped: tried for each role, way to train,
signal and moment.

Clusters of processes on one machine (2 cores), of which one task gets a signal: SIGKILL, SIGTERM,
or SIGSTOP for 10 s. Asynchronous, synchronous and all-reduce runs have {WORKERS} workers, those
with a backup one more; all but all-reduce have 2 parameter servers. Who was killed is started
again, a worker that had made its last step excepted; with all-reduce the launcher starts all. A
parameter server that is killed at the end is back before the chief goes on. What is promised is
in [cluster.md](cluster.md#when-a-task-is-lost). Workers that are killed, ended, stopped and added
at random for a minute, in each way to train: [elastic.md](elastic.md#measured).

| moment | when the signal comes |
|---|---|
| start | the victim has printed its first line |
| step n | the victim, or for a parameter server the chief, has made step n |
| save | the chief is writing the checkpoint of step {SAVE_STEPS}: part of a file is there |
| end | the victim, or for a parameter server the chief, has made its last step, {STEPS} |

All cases check that the run ends at exactly step {STEPS}, that who was killed ends by the signal
within 10 s and every other process, or the launcher, with 0, that the newest checkpoint loads and
is of step {STEPS}, that nothing is left running, and that the weights of synchronous and all-reduce
runs are those of an undisturbed run to 1e-6. Where a parameter server is killed at most one save
interval ({SAVE_STEPS} steps) is lost, and nothing elsewhere; all-reduce goes on from the newest
checkpoint.

`python -m tests.processes.fault_matrix` runs the cases, two at once, and writes this page. Of
{len(cases())} cases {len(lines)} were run; of these {num_holding} hold.

| mode | who | signal | moment | result | seconds |
|---|---|---|---|---|---|
"""


def main(part):
    """Runs the cases, and writes the table with those of earlier runs; returns how many failed."""
    chosen = [case for case in cases() if part in str(case)]
    rows, num_failures = rows_before(), 0
    with multiprocessing.get_context("spawn").Pool(_CASES_AT_ONCE) as pool:
        for case, (secs, failure) in zip(chosen, pool.imap(run, chosen), strict=True):
            num_failures += bool(failure)
            rows[case] = row(case, secs, failure)
            print(rows[case], flush=True)
    lines = [rows[case] for case in cases() if case in rows]
    _, mark, sections = PAGE.read_text().partition("\n## ")  # of other programs
    PAGE.write_text(head(lines) + "\n".join(lines) + "\n" + mark + sections)
    return num_failures


if __name__ == "__main__":
    sys.exit(min(1, main(" ".join(sys.argv[1:]))))
