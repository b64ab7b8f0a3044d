"""The full matrix of faults, role x mode x signal x moment, as a table in docs/faults.md.

python -m tests.processes.fault_matrix [part of the names of the cases]

With a part of the names only these cases are run, and the results of others stay what they are.
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
# What the table says of a case that was not run.
NOT_RUN = "-"
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


def in_words(moment):
    """A moment as the page names it."""
    return f"step {moment}" if isinstance(moment, int) else moment


def rows():
    """What each row of the table begins with, and its cases, one for each moment."""
    found = {}
    for case in cases():
        beginning = f"| {case.mode} | {case.victim} | {case.signal.name} |"
        found.setdefault(beginning, []).append(case)
    return found


def results_before():
    """What the page as it is says of each case that was run."""
    lines = PAGE.read_text().splitlines() if PAGE.exists() else []
    found = {}
    for beginning, row in rows().items():
        for line in (line for line in lines if line.startswith(beginning)):
            cells = map(str.strip, line.removeprefix(beginning).strip("| ").split("|"))
            found |= {case: cell for case, cell in zip(row, cells, strict=True) if cell != NOT_RUN}
    return found


def result(secs, failure):
    """What the table says of a case."""
    return f"fails: {failure[:80].replace('|', ' ')}" if failure else f"{secs:.0f} s"


def table(results):
    """The rows of the table."""
    for beginning, row in rows().items():
        yield f"{beginning} {' | '.join(results.get(case, NOT_RUN) for case in row)} |"


def after_rows():
    """The sections of the page after the table, which others write."""
    text = PAGE.read_text() if PAGE.exists() else ""
    place = text.find("\n## ")
    return "" if place < 0 else text[place:]


def head(results):
    """What comes before the rows of these results."""
    num_holding = sum(not each.startswith("fails") for each in results.values())
    return f"""# Faults

What becomes of a run of which one process is killed or stopped: tried for each role, way to train,
signal and moment.

Clusters of processes on one machine (2 cores), of which one task gets a signal: SIGKILL, SIGTERM,
or SIGSTOP for 10 s. Asynchronous, synchronous and all-reduce runs have {WORKERS} workers, those
with a backup one more; all but all-reduce have 2 parameter servers. Who was killed is started
again, a worker that had made its last step excepted; with all-reduce the launcher starts all. A
parameter server that is killed at the end is back before the chief goes on. What is promised is
in [cluster.md](cluster.md#when-a-task-is-lost). Workers that are killed, ended, stopped and added
at random for a minute, in each way to train, or killed every few seconds, with the pauses and the
effective time of the run: [elastic.md](elastic.md#measured). Ends of a program in each way to train
(`python -m tests.processes.ends`): 305 in a row, none late, none aborted, at a load of 15 to 35.

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

`python -m tests.processes.fault_matrix` runs the cases, two at once, and writes this table. Of
{len(cases())} cases {len(results)} were run; of these {num_holding} hold, in so many seconds:

| mode | who | signal | {" | ".join(map(in_words, MOMENTS))} |
|---|---|---|---|---|---|---|
"""


def main(part):
    """Runs the cases, and writes the table with those of earlier runs; returns how many failed."""
    chosen = [case for case in cases() if part in str(case)]
    results, num_failures = results_before(), 0
    with multiprocessing.get_context("spawn").Pool(_CASES_AT_ONCE) as pool:
        for case, (secs, failure) in zip(chosen, pool.imap(run, chosen), strict=True):
            num_failures += bool(failure)
            results[case] = result(secs, failure)
            print(case, results[case], flush=True)
    PAGE.write_text(head(results) + "\n".join(table(results)) + "\n" + after_rows())
    return num_failures


if __name__ == "__main__":
    sys.exit(min(1, main(" ".join(sys.argv[1:]))))
