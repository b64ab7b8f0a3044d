"""Training over slow links: processes in network namespaces, each link limited.

    python -m benchmarks.slow_network [--rounds=5]
    python -m benchmarks.slow_network grid [--list] [--rows='all_reduce-*'] [--rounds=3] [--write]

As root on Linux, with `ip` and `tc`; elsewhere it says what is missing.
"""

import argparse
import contextlib
import fnmatch
import functools
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence

from benchmarks import namespaces, network_data, network_grid
from benchmarks.child import Child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.wire import PRECISIONS, start_in_network, traffic_of_round

SECONDS, BYTES = "seconds per step", "MB sent per worker and step"
NUM_WORKERS, MEGABITS = 4, 400


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """All-reduce with each wire precision."""
    steps, megabytes = settings.amount(5), settings.amount(40, quick=4)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        reason = namespaces.missing()
        if reason is not None:
            return dict.fromkeys(PRECISIONS, Absent(reason))
        hosts = stack.enter_context(namespaces.slow_network(NUM_WORKERS, MEGABITS))
        contenders: dict[str, Measure | Absent] = {}
        for i, precision in enumerate(PRECISIONS):
            workers = start_in_network(
                stack, hosts, i, wire_precision=precision, megabytes=megabytes
            )
            contenders[precision] = functools.partial(_measure, workers, hosts, steps)
        return contenders

    # Each process sends and receives 2 (n - 1) / n of the bytes.
    limit = 2 * (NUM_WORKERS - 1) / NUM_WORKERS * megabytes * 8 / MEGABITS
    yield Benchmark(
        title="Slow links: all-reduce",
        does=(
            f"{NUM_WORKERS} workers, each with a link of {MEGABITS} Mbit/s, {megabytes} MB of "
            f"float32 gradients. With 32 bits the links alone take {limit:.2f} s a step, with 16 "
            f"{limit / 2:.2f} s."
        ),
        quantities=(SECONDS, BYTES),
        reference="float32",
        start=start,
        goals=(
            Goal(SECONDS, "bfloat16", "float32", 0.55, at_most=True),
            Goal(BYTES, "bfloat16", "float32", 0.52, at_most=True),
        ),
    )


def _measure(
    workers: Sequence[Child], hosts: Sequence[namespaces.Host], steps: int
) -> dict[str, float]:
    seconds, sent = traffic_of_round(workers, hosts, steps)
    return {SECONDS: seconds / steps, BYTES: sent}


def main(arguments: Sequence[str]) -> int:
    """The tables, or with `grid` the measurements that plans are compared with."""
    if arguments[:1] != ["grid"]:
        run_command(benchmarks, __doc__ or "", arguments)
        return 0
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slow_network grid")
    parser.add_argument("--list", action="store_true", help="only print the names of the rows")
    parser.add_argument("--rows", default="*", help="pattern of names, such as 'synchronous-4w-*'")
    parser.add_argument("--rounds", type=int, default=3, help="of at least three steps each")
    parser.add_argument(
        "--write", action="store_true", help=f"put them into {network_data.DATA.name}"
    )
    flags = parser.parse_args(arguments[1:])
    chosen = [group for group in network_grid.GRID if fnmatch.fnmatch(group.name, flags.rows)]
    if not chosen:
        parser.error(f"--rows must fit a name of --list, got {flags.rows}")
    if flags.list:
        print("\n".join(f"{group.name} at {network_grid.GRID[group]} Mbit/s" for group in chosen))
        return 0
    if (reason := namespaces.missing()) is not None:
        parser.error(reason)
    # The network is removed on the way out, which a signal would not take.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    for group in chosen:
        for measured in network_grid.measure(group, network_grid.GRID[group], flags.rounds):
            print(measured, flush=True)
            if flags.write:
                network_data.write(measured)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
