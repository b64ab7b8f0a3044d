"""DLRM on 1 parameter server and 2 workers, against `ParameterServerStrategy` by hand.

    python -m benchmarks.dlrm_ps [--rounds=5]

Real processes on the loopback, gradient descent without waiting, 128 clicks per worker and step.
"""

import contextlib
from collections.abc import Iterable, Mapping

from benchmarks import ps_training
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command

TRAIN, STRATEGY = "train", ps_training.STRATEGY
ROWS_ONCE = f"{STRATEGY}, rows once"


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One table of results."""
    steps = settings.amount(100, quick=4)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        return {
            TRAIN: ps_training.start_cluster(stack, 2, 1, network="dlrm_work", steps=steps),
            **{
                name: ps_training.start_strategy(
                    stack, 2 * steps, network="dlrm_by_strategy", rows_once=rows_once
                )
                for name, rows_once in ((STRATEGY, False), (ROWS_ONCE, True))
            },
        }

    yield Benchmark(
        title="DLRM on 1 parameter server, 2 workers",
        does=(
            "The network of the benchmark on one machine, batches of 128 per worker, gradient "
            "descent. `train` has tables that grow, the programs by hand have fixed ones; the "
            "second one looks up each id once per step."
        ),
        quantities=ps_training.QUANTITIES,
        reference=STRATEGY,
        start=start,
        goals=tuple(Goal(ps_training.UNIT, TRAIN, each, 1.5) for each in (STRATEGY, ROWS_ONCE)),
    )


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
