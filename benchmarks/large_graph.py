"""Building 8 clones of nasnet_large, and what TensorFlow does before their first step.

    python -m benchmarks.large_graph [--rounds=1]

The graph has 216,000 ops by copy.  "By call" is a program that calls `model_fn` for each clone,
in a session of TensorFlow's options; "by copy" is this project's default, with `session_config`.
Each is measured in a new process, in processor seconds, one image per clone.  "Before the first
step" is what that step takes longer than the one after it: TensorFlow places, rewrites and divides
the graph.  Goal: half of the time by call.
"""

import contextlib
import functools
import time
from collections.abc import Iterable, Mapping

from benchmarks import graph_building
from benchmarks.child import Requests, measure_in_new_process
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command

BUILDING, VARIABLES, REWRITING = "building", "first values", "before the first step"
ALL = "processor seconds of all"
CALL, COPY = "by call, TensorFlow's options", "by copy, session_config"


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """One table: both ways, with what each stage takes."""
    network, num_clones = ("cifarnet", 2) if settings.quick else ("nasnet_large", 8)

    def start(_: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        return {
            name: functools.partial(
                measure_in_new_process,
                "benchmarks.large_graph",
                "serve",
                num_clones=num_clones,
                network=network,
                as_ours=name == COPY,
            )
            for name in (CALL, COPY)
        }

    yield Benchmark(
        title="A large graph",
        does=f"{num_clones} clones of {network} with gradients, from `deploy` to their first step.",
        quantities=(ALL, BUILDING, VARIABLES, REWRITING),
        reference=CALL,
        start=start,
        goals=(Goal(ALL, COPY, CALL, 0.5, at_most=True),),
    )


def serve(requests: Requests, num_clones: int, network: str, as_ours: bool) -> None:
    """Answers by the processor seconds of each stage, after a small graph that loads modules."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - the parent process needs none

    from model_deploy import training  # noqa: PLC0415

    tf.disable_eager_execution()
    tf.disable_tensor_equality()
    with tf.Graph().as_default():
        graph_building.build("cifarnet", 2, as_ours, batch_size=1)
    taken = {}
    with tf.Graph().as_default():
        start = time.process_time()
        model = graph_building.build(network, num_clones, as_ours, batch_size=1)
        taken[BUILDING] = time.process_time() - start
        proto = training.session_config(model.config) if as_ours else None
        with tf.Session(config=proto) as session:
            initializer = tf.global_variables_initializer()
            taken[VARIABLES] = graph_building.processor_seconds(session, initializer)
            first, later = (
                graph_building.processor_seconds(session, model.train_op) for _ in range(2)
            )
    taken[REWRITING] = first - later
    requests.serve(lambda: {ALL: sum(taken.values()), **taken})


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
