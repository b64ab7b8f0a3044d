"""Files of an attacker: read, or refused in one line, without running code or filling the memory.

    python -m tests.security.fuzz --seconds=600 [READER...]

draws new contents for each reader of `READERS` as long as there is time, in a process whose memory
is bounded, and ends with 1 at the first that breaks the rule.  hypothesis draws them, as it makes
a finding small and needs no compiler; it is what the other tests use, too.
"""

import argparse
import contextlib
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from model_deploy.checkpoints.manifest import read_manifest
from model_deploy.checkpoints.state_file import read_state
from model_deploy.checkpoints.watching import read_end
from model_deploy.cluster.tf_config import cluster_from_tf_config
from model_deploy.commands import read_options
from model_deploy.processes import read_world
from model_deploy.profile.traces import read_trace
from model_deploy.runs import find_runs, read_time_spent
from model_deploy.status import read_status, status_report

# More memory than the process has before, and time, for one file.
MEMORY_BYTES, FILE_SECS = 1 << 30, 10
# What only code of the file's would do.
_EVENTS = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen")
_EVENTS += ("pickle.find_class", "socket.connect", "os.chmod", "os.symlink")

_LAUGHS = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30))
_MERGES = "\n".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}" for i in range(1, 40))
YAML = (
    f"a0: &a0 [lol]\n{_LAUGHS}",
    f"a0: &a0 {{x: 1}}\n{_MERGES}",
    "a: &a [*a]",
    "[" * 100_000,
    "{a: " * 5000,
    "- " * 5000,
    "? " * 5000,
    "batch_size: " + "9" * 10_000,
    "batch_size: " + "1:" * 5000 + "1",
    "batch_size: 0x" + "f" * 10_000,
    "batch_size: 1" + "_" * 1000,
    "batch_size: 1e999999999",
    "when: 2001-99-99",
    "when: 2001-01-01T99:99:99",
    "a: !!python/object/apply:os.system ['touch pwned']",
    "a: !!python/object/new:os.system ['touch pwned']",
    "a: !!python/name:os.system",
    "!!python/module:os",
    "a: !!binary ====",
    "a: !!timestamp x",
    "a: !!int x",
    "a: !!float x",
    "a: !!bool x",
    "a: !!omap x",
    "? [1]\n: 2",
    "1: 2",
    "\0",
    "x" * 1_000_000,
)
_WORLD = '{"version": 1, "generation": %s, "max_workers": %s, "workers": %s}'
JSON = (
    "[" * 100_000,
    '{"a":' * 100_000,
    "9" * 10_000,
    "1e999",
    "NaN",
    '"\\ud800"',
    '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1e400}}',
    '{"cluster": {"worker": ["a:%s"]}, "task": {}}' % ("9" * 5000),
    _WORLD % (1, 10**18, '{"0": "a:1"}'),
    _WORLD % (1, 1, '{"%s": "a:1"}' % ("9" * 5000)),
    _WORLD % ("9" * 5000, 1, '{"0": "a:1"}'),
    _WORLD % ("1e999", "true", '{"0": ["a:1"]}'),
    '{"step": %s, "loss": 1}' % ("9" * 4000),
    '{"step": 1, "loss": %s}' % ("9" * 4000),
    '{"step": true, "loss": NaN, "accuracy": "x"}',
    '{"traceEvents": [{"ph": "M", "pid": [], "args": {"name": 1}}]}',
)
STATE = (
    'model_checkpoint_path: "../../etc/passwd"\nall_model_checkpoint_paths: "/dev/zero"',
    "model_checkpoint_path: " + '"a" ' * 10_000,
    'model_checkpoint_path: "\\377"',
    "all_model_checkpoint_timestamps: " + "9" * 10_000,
    "unknown { " * 10_000,
    "[" * 100_000,
)
_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


def _texts(known):
    """Known texts, changed at a place; and texts of their characters."""

    def changed(text, place, data):
        place = place % (len(text) + 1)
        return text[:place] + data + text[place + len(data) :]

    data = st.text("{}[]:,*&!-'\"\n 019ae.", max_size=8)
    pieces = st.builds(changed, st.sampled_from(known), st.integers(0, 2000), data)
    return st.one_of(pieces, st.text(max_size=60), _PLAIN.map(str), _PLAIN.map(repr))


def _of_run(name, read):
    """Reads a file under its name in the folder of a run."""

    def read_as(path):
        folder = path.parent / "run"
        folder.mkdir(exist_ok=True)
        path.replace(folder / name)
        return read(folder)

    return read_as


def _read_metrics(folder):
    return [
        (run.loss, run.best_accuracy, run.images_per_sec, run.step) for run in find_runs([folder])
    ]


def _read_tf_config(path):
    cluster_from_tf_config(path.read_text(errors="surrogateescape"))


# Name -> known contents, and what reads a file.
READERS = {
    "options": (YAML, read_options),
    "world": (JSON, read_world),
    "tf_config": (JSON, _read_tf_config),
    "metrics": (JSON, _of_run("metrics.jsonl", _read_metrics)),
    "end mark": (JSON, _of_run("run_ended", read_end)),
    "manifest": (JSON, _of_run("a-1.manifest", lambda folder: read_manifest(f"{folder}/a-1"))),
    "status": (JSON, _of_run("status.json", lambda folder: status_report(read_status(folder), 0))),
    "time": (JSON, _of_run("time.json", lambda folder: str(read_time_spent(folder)))),
    "state": (STATE, _of_run("checkpoint", lambda folder: read_state(str(folder)))),
    "trace": (JSON, lambda path: read_trace(str(path))),
}


def _forbid(event, _):
    if event in _EVENTS and _forbid.on:
        raise AssertionError(f"a file has run code: {event}")


_forbid.on = False


@contextlib.contextmanager
def _bounded():
    """Bounds memory and time within, and lets nothing run code."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, before[1]))
    handler = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("hangs")))
    signal.alarm(FILE_SECS)
    _forbid.on = True
    try:
        yield
    finally:
        _forbid.on = False
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def check(name, content):
    """Reads one file; a `ValueError` of one line is right, and any other error is not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_text(content, errors="surrogatepass")
        line = "read"
        try:
            with _bounded():
                READERS[name][1](path)
        except ValueError as error:
            line = str(error)
        assert 0 < len(line) < 20_000, "an error without a line, or one that fills the screen"
        assert "\n" not in line, f"an error of several lines: {line}"
        assert {each.name for each in Path(folder).iterdir()} <= {"file", "run"}


def fuzz(name, examples, seed=0):
    """Draws so many contents for a reader, after the known ones."""

    @with_seed(seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(_texts(READERS[name][0]))
    def draw(content):
        check(name, content)

    draw()


sys.addaudithook(_forbid)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="in all")
    parser.add_argument("readers", nargs="*", default=list(READERS), metavar="READER")
    options = parser.parse_args()
    end, seed = time.monotonic() + options.seconds, 0
    for name in options.readers:
        for content in READERS[name][0]:
            check(name, content)
    while time.monotonic() < end:
        seed += 1
        for name in options.readers:
            fuzz(name, 100, seed)
    print(f"{100 * seed:,} contents for each of {', '.join(options.readers)}")


if __name__ == "__main__":
    main()
