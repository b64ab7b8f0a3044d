"""DLRM on one machine: examples per second, beside PyTorch and Keras; growing beside fixed tables.

    python -m benchmarks.dlrm [--rounds=5]

The network of `examples/dlrm.py` with the layers of Facebook's script for Criteo's Kaggle data
(512-256-64-16 and 512-256-1), 26 tables, clicks that are made before.  Adam: `RowAdamOptimizer`,
which is Adam, and `LazyAdamOptimizer`, which is PyTorch's `SparseAdam`.
"""

import contextlib
import statistics
import time
from collections.abc import Iterable, Mapping

from benchmarks import sizes, torch_peer
from benchmarks.child import Requests, start_child
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, first, run_command

UNIT, MILLISECONDS = "examples/s", "milliseconds"
LAZY, BY_ROWS = "deploy, lazy Adam", "deploy, Adam by rows"
TORCH, ONE_THREAD = "PyTorch, SparseAdam", "PyTorch, SparseAdam, one thread"
KERAS = "Keras fit, Adam"
PEERS = (TORCH, ONE_THREAD, KERAS)
BATCH_SIZES = (128, 2048)
FIXED, GROWING = "fixed table", "growing table"
NEW_ROWS = "growing table, all ids new"


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """Against the peers for each batch size; one table for each optimizer."""
    for batch_size in BATCH_SIZES:
        yield _against_peers(settings, batch_size)
    for optimizer in ("sgd", "adagrad"):
        yield _one_table(settings, optimizer)


def _against_peers(settings: Settings, batch_size: int) -> Benchmark:
    work = {"batch_size": batch_size, "steps": settings.amount(25_600 // batch_size + 40)}

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        def own(optimizer: str) -> Measure:
            return start_child(stack, "benchmarks.dlrm", "serve", optimizer=optimizer, **work)

        return {
            LAZY: own("lazy_adam"),
            BY_ROWS: own("row_adam"),
            TORCH: _start_torch(stack, **work),
            ONE_THREAD: _start_torch(stack, num_threads=1, **work),
            KERAS: start_child(stack, "benchmarks.dlrm_keras_peer", "serve", **work),
        }

    return Benchmark(
        title=f"DLRM, batches of {batch_size:,}",
        does=(
            "26 tables with the cardinalities of Criteo's Kaggle data, at most 100,000, of rows of "
            "16; this project's tables grow."
        ),
        quantities=(UNIT,),
        reference=BY_ROWS,
        start=start,
        goals=(*first(UNIT, BY_ROWS, PEERS), *first(UNIT, LAZY, PEERS)),
    )


def _start_torch(stack: contextlib.ExitStack, **arguments: int) -> Measure | Absent:
    if not torch_peer.is_installed():
        return torch_peer.ABSENT
    return start_child(stack, "benchmarks.dlrm_torch_peer", "serve", **arguments)


def _one_table(settings: Settings, optimizer: str) -> Benchmark:
    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        return {
            name: start_child(
                stack,
                "benchmarks.dlrm",
                "serve_table",
                kind=name,
                optimizer=optimizer,
                steps=settings.amount(300),
            )
            for name in (FIXED, GROWING, NEW_ROWS)
        }

    return Benchmark(
        title=f"A growing table, {optimizer}",
        does=(
            f"{sizes.ROWS:,} rows of {sizes.WIDTH}, {sizes.SENTENCES * sizes.WORDS:,} random ids "
            "per step, which all have rows; in the last contender none has. The median step."
        ),
        quantities=(MILLISECONDS,),
        reference=FIXED,
        start=start,
        goals=(Goal(MILLISECONDS, GROWING, FIXED, 1.5, at_most=True),),
    )


def serve(requests: Requests, optimizer: str, batch_size: int, steps: int) -> None:
    """Trains `steps` steps per request; answers "examples/s"."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - the parent process needs none

    from benchmarks import dlrm_work  # noqa: PLC0415 - as above
    from model_deploy import DeploymentConfig, deploy  # noqa: PLC0415
    from model_deploy.training import OptimizerOptions, build_optimizer  # noqa: PLC0415

    with tf.Graph().as_default(), tf.Session() as session:
        options = OptimizerOptions(optimizer=optimizer, opt_epsilon=1e-8)
        model = deploy(
            DeploymentConfig(clone_on_cpu=True),
            lambda: dlrm_work.add_loss(batch_size),
            optimizer=build_optimizer(dlrm_work.LEARNING_RATE, options),
        )
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        step = session.make_callable(model.train_op)

        def measure() -> dict[str, float]:
            began = time.perf_counter()
            for _ in range(steps):
                step()
            return {UNIT: steps * batch_size / (time.perf_counter() - began)}

        for _ in range(dlrm_work.NUM_BATCHES):  # then all ids have been seen
            step()
        requests.serve(measure)


def serve_table(requests: Requests, kind: str, optimizer: str, steps: int) -> None:
    """Trains `steps` steps per request; answers the median "milliseconds"."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - the parent process needs none

    from model_deploy import DeploymentConfig, deploy, embeddings  # noqa: PLC0415
    from model_deploy.training import OptimizerOptions, build_optimizer  # noqa: PLC0415

    if kind == FIXED:
        table = embeddings.FixedTable(name="table", width=sizes.WIDTH, num_rows=sizes.ROWS)
    else:
        table = embeddings.GrowingTable(name="table", width=sizes.WIDTH, max_rows=sizes.ROWS)
    count = sizes.SENTENCES * sizes.WORDS
    all_ids = [range(at, at + 50_000) for at in range(0, sizes.ROWS, 50_000)]

    def model_fn() -> None:
        # Random ones, but for those that are fed.
        limit = 2**60 if kind == NEW_ROWS else sizes.ROWS
        ids = tf.placeholder_with_default(
            tf.random_uniform([count], 0, limit, tf.int64), [None], "ids"
        )
        rows = embeddings.look_up(table, ids)
        tf.losses.mean_squared_error(tf.ones_like(rows), rows)

    with tf.Graph().as_default() as graph, tf.Session() as session:
        model = deploy(
            DeploymentConfig(clone_on_cpu=True),
            model_fn,
            optimizer=build_optimizer(0.01, OptimizerOptions(optimizer=optimizer)),
        )
        session.run(tf.global_variables_initializer())
        if kind == GROWING:
            for ids in all_ids:
                session.run(model.train_op, {graph.get_tensor_by_name("ids:0"): [*ids]})
        step = session.make_callable(model.train_op)

        def measure() -> dict[str, float]:
            seconds = []
            for _ in range(steps):
                start = time.perf_counter()
                step()
                seconds.append(time.perf_counter() - start)
            return {MILLISECONDS: 1000 * statistics.median(seconds)}

        measure()
        requests.serve(measure)


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
