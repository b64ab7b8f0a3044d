"""What a slow clone costs the other one: with synchronous clones, and with asynchronous ones.

    python -m benchmarks.asynchronous_clones [--rounds=5]

Two clones, whose steps sleep for 5 ms; then one of them for 50 ms.  What counts is how often
the other one comes to make a step.  Goal: asynchronous, at least 0.9 of what it makes beside a
clone as fast as itself.
"""

import contextlib
import functools
import io
import itertools
import tempfile
import time
from collections.abc import Iterable, Mapping

from benchmarks.frame import Benchmark, Goal, Measure, Settings, run_command

MILLISECONDS, SLOWER = 5, 10
QUANTITY = "steps/s of the fast clone"


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """All four combinations."""
    fast_steps = settings.amount(300, quick=10)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure]:
        del stack
        return {
            _name(asynchronous, slow): functools.partial(
                measure, asynchronous, slow, fast_steps // (10 if slow and not asynchronous else 1)
            )
            for asynchronous, slow in itertools.product((False, True), (False, True))
        }

    yield Benchmark(
        title="A slow clone",
        does=(
            f"Two clones whose steps take {MILLISECONDS} ms, or one of them {SLOWER} times that: "
            "how many steps the fast one makes."
        ),
        quantities=(QUANTITY,),
        reference=_name(False, False),
        start=start,
        goals=(Goal(QUANTITY, _name(True, True), _name(True, False), 0.9),),
    )


def _name(asynchronous: bool, slow: bool) -> str:
    way = "asynchronous" if asynchronous else "synchronous"
    return f"{way}, {'one slow' if slow else 'equal'}"


def measure(asynchronous: bool, slow: bool, fast_steps: int) -> dict[str, float]:
    """Trains until the fast clone has made its steps."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - the frame needs none

    import model_deploy  # noqa: PLC0415

    tf.disable_eager_execution()
    times: list[float] = []

    def model_fn(clones: Iterable[int]) -> None:
        is_fast = next(iter(clones)) == 0
        factor = 1 if is_fast or not slow else SLOWER

        def work(value: float) -> float:
            time.sleep(factor * MILLISECONDS / 1000)
            if is_fast:
                times.append(time.perf_counter())
            return value

        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        tf.losses.add_loss(tf.ensure_shape(tf.numpy_function(work, [weight], tf.float32), []))
        tf.losses.add_loss(tf.square(weight))

    class Enough(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values) -> None:  # type: ignore[no-untyped-def]
            if len(times) > fast_steps:
                run_context.request_stop()

    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        config = model_deploy.DeploymentConfig(num_clones=2, clone_on_cpu=True)
        optimizer = tf.train.GradientDescentOptimizer(0.001)
        model = model_deploy.deploy(
            config, model_fn, [itertools.count()], optimizer=optimizer, asynchronous=asynchronous
        )
        with contextlib.redirect_stderr(io.StringIO()):
            model_deploy.train(model, folder, hooks=[Enough()], log_every_n_steps=1000)
    return {QUANTITY: (len(times) - 1) / (times[-1] - times[0])}


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
