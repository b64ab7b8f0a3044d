"""DLRM on 1 parameter server and 2 workers, against `ParameterServerStrategy` by hand.

    python -m benchmarks.dlrm_ps [--rounds=5]

Real processes on the loopback, gradient descent without waiting, 512 clicks per worker and step.
"""

import contextlib
from collections.abc import Iterable, Mapping

from benchmarks import ps_training
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command

TRAIN, STRATEGY = "train", ps_training.STRATEGY


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One table of results."""
    steps = settings.amount(100, quick=4)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        return {
            TRAIN: ps_training.start_cluster(stack, 2, 1, network="dlrm_work", steps=steps),
            STRATEGY: ps_training.start_strategy(stack, 2 * steps, network="dlrm_by_strategy"),
        }

    yield Benchmark(
        title="DLRM on 1 parameter server, 2 workers",
        does=(
            "The network of the benchmark on one machine, batches of 512 per worker, gradient "
            "descent. `train` has tables that grow; the program by hand has fixed ones, and moves "
            "each row once per step."
        ),
        quantities=ps_training.QUANTITIES,
        reference=STRATEGY,
        start=start,
        goals=(Goal(ps_training.UNIT, TRAIN, STRATEGY, 1.5),),
    )


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
