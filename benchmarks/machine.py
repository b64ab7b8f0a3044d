"""What a table of benchmarks was measured on."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import re
import sys
import time

_SAMPLE_SECS, _IDLE_SHARE = 0.2, 0.1


def describe_machine() -> str:
    """Machine, versions and date, as a Markdown list."""
    facts = {
        "date": _today(),
        "processor": _processor(),
        "memory": f"{memory_gib():.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        **{package: version(package) for package in ("tensorflow", "keras", "tf-slim", "torch")},
    }
    return "\n".join(f"- {name}: {fact}" for name, fact in facts.items())


def describe_run(rounds: int) -> str:
    """When, on what and how often a table was measured, as one sentence."""
    return f"Measured on {_today()}: {_processor()}; rounds: {rounds}."


def _today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


def _processor() -> str:
    return f"{cpu_name()}, {len(os.sched_getaffinity(0))} cores"


def cpu_name() -> str:
    """As the kernel has it."""
    found = re.search(r"model name\s*: (.+)", pathlib.Path("/proc/cpuinfo").read_text())
    return found.group(1).strip() if found else platform.machine()


def memory_gib() -> float:
    """Of the whole machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def busy_secs() -> float:
    """Seconds that all processors were busy since the machine was started, for others too."""
    first = pathlib.Path("/proc/stat").read_text().partition("\n")[0]
    user, nice, system, _, _, irq, softirq, *_ = map(int, first.split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def wait_until_idle(patience_secs: float = 60.0) -> None:
    """Waits until less than a tenth of one processor is busy, for others too.

    So what a contender still does in the background, such as to fill its buffers, is not counted
    against the next one.  When the patience is over, a line says so.
    """
    deadline = time.monotonic() + patience_secs
    while time.monotonic() < deadline:
        before = busy_secs()
        time.sleep(_SAMPLE_SECS)
        if busy_secs() - before < _IDLE_SHARE * _SAMPLE_SECS:
            return
    print(f"this machine was busy for {patience_secs:g} s: measuring anyway", file=sys.stderr)


def version(package: str) -> str:
    """Of an installed package, or that it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
