"""Steps of a table of [1000000, 64]: Adam for rows, dense Adam, lazy Adam and plain ones.

    python -m benchmarks.row_optimizers [--rounds=5]

Each step looks up 1,280 rows and trains them, on one clone; milliseconds per step, the median of
many.  At random nearly every row is new.  By Zipf's law a third of them have been used before, so
that there is something to make up for.  Goal: dense Adam takes at least 100 times as long.
"""

import contextlib
import functools
import math
import statistics
import time
from collections.abc import Iterable, Mapping

from benchmarks.child import Requests, measure_in_new_process
from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.sizes import ROWS, SENTENCES, WIDTH, WORDS

QUANTITY = "milliseconds"
OPTIMIZERS = ("sgd", "adam", "row_adam", "lazy_adam")
WORDS_BY = {"at random": "each row as often as any", "by Zipf's law": "row n 1 / n times as often"}


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """Rows at random, and rows most of which are used again and again."""
    steps = settings.amount(300, quick=3)
    for law, meaning in WORDS_BY.items():

        def start(stack: contextlib.ExitStack, law: str = law) -> Mapping[str, Measure | Absent]:
            del stack
            return {
                name: functools.partial(measure_in_process, name, law, steps) for name in OPTIMIZERS
            }

        yield Benchmark(
            title=f"Adam for tables, rows {law}",
            does=(
                f"A table of {ROWS:,} x {WIDTH} (256 MB) and {SENTENCES * WORDS:,} rows of it per "
                f"step, {meaning}."
            ),
            quantities=(QUANTITY,),
            reference="row_adam",
            start=start,
            goals=(Goal(QUANTITY, "adam", "row_adam", 100),),
        )


def measure_in_process(name: str, law: str, steps: int) -> dict[str, float]:
    """Trains in a new process; returns the median of the milliseconds of a step."""
    measured = measure_in_new_process(
        "benchmarks.row_optimizers", "serve", name=name, law=law, steps=steps
    )
    return {QUANTITY: measured[QUANTITY]}


def serve(requests: Requests, name: str, law: str, steps: int) -> None:
    """The process of `measure_in_process`."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - the parent process needs none

    from model_deploy import DeploymentConfig, deploy  # noqa: PLC0415
    from model_deploy.training import OptimizerOptions, build_optimizer  # noqa: PLC0415

    # A dense step takes so long that fewer of them are enough.
    steps = max(3, steps // 20) if name == "adam" else steps

    def model_fn() -> None:
        table = tf.get_variable("table", [ROWS, WIDTH], initializer=tf.zeros_initializer())
        places = tf.random_uniform([SENTENCES, WORDS])
        rows = ROWS * places if law == "at random" else tf.exp(places * math.log(ROWS)) - 1
        words = tf.minimum(tf.cast(rows, tf.int64), ROWS - 1)
        tf.losses.mean_squared_error(
            tf.ones([SENTENCES, WORDS, WIDTH]), tf.nn.embedding_lookup(table, words)
        )

    def measure() -> dict[str, float]:
        seconds = []
        for _ in range(2 * steps):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
        return {QUANTITY: 1000 * statistics.median(seconds[steps:])}

    with tf.Graph().as_default(), tf.Session() as session:
        options = OptimizerOptions(optimizer=name, opt_epsilon=1e-8)
        model = deploy(
            DeploymentConfig(clone_on_cpu=True),
            model_fn,
            optimizer=build_optimizer(0.01, options),
        )
        session.run(tf.global_variables_initializer())
        step = session.make_callable(model.train_op)
        requests.serve(measure)


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
