"""Building 8 clones of nasnet_large, and what TensorFlow does before their first step.

    python -m benchmarks.large_graph [--rounds=1]

The graph has 216,000 ops by copy.  "By call" is a program that calls `model_fn` for each clone,
in a session of TensorFlow's options; "by copy" is this project's default, with `session_config`.
Each is measured in a new process, in processor seconds, one image per clone.  "Before the first
step" is what that step takes longer than the one after it: TensorFlow places, rewrites and divides
the graph.  Goal: half of the time by call.
"""

from collections.abc import Iterable

from benchmarks.frame import Benchmark, Goal, Settings, run_command
from benchmarks.graph_building import ALL, BUILDING, REWRITING, VARIABLES, by_options

CALL, COPY = "by call, TensorFlow's options", "by copy, session_config"


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One table: both ways, with what each stage takes."""
    network, num_clones = ("cifarnet", 2) if settings.quick else ("nasnet_large", 8)
    yield Benchmark(
        title="A large graph",
        does=f"{num_clones} clones of {network} with gradients, from `deploy` to their first step.",
        quantities=(ALL, BUILDING, VARIABLES, REWRITING),
        reference=CALL,
        start=by_options((CALL, False), (COPY, True), network, num_clones, num_later=1),
        goals=(Goal(ALL, COPY, CALL, 0.5, at_most=True),),
    )


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
