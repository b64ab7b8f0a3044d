"""What a checkpoint of 400 MB costs the steps: written while they go on, and while they wait.

    python -m benchmarks.saving [--rounds=5]

40 variables of [2500, 1000], all of them changed in each step.  The pause is the time between the
two steps at a checkpoint, and what the next step takes longer than the median of others: it takes
other memory for what it changes.  Lost is what all steps until the end of the writing take longer.
Goals: in the background at most a fifth of the pause, and with a checkpoint every 10 s at most
3.5% of the time is lost (CheckFreq, FAST 2021).
"""

import contextlib
import functools
import statistics
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping

from benchmarks.child import Requests, start_child
from benchmarks.frame import Benchmark, Goal, Measure, Settings, run_command

COUNT, SHAPE = 40, (2500, 1000)
PAUSE, LOST, SHARE = "pause, ms", "lost, ms", "% of 10 s lost"
WAYS = {"background": True, "steps wait": False}


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """Both ways."""
    saves = settings.amount(5, quick=1)

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure]:
        return {
            name: start_child(stack, "benchmarks.saving", "serve", in_background=way, saves=saves)
            for name, way in WAYS.items()
        }

    yield Benchmark(
        title="Saving 400 MB",
        does="A checkpoint of 40 variables of 10 MB, all of which each step changes.",
        quantities=(PAUSE, LOST, SHARE),
        reference="background",
        start=start,
        goals=(Goal(PAUSE, "steps wait", "background", 5),),
    )


def serve(requests: Requests, in_background: bool, saves: int) -> None:
    """The process of a way: medians of some checkpoints."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - the parent process needs none

    from model_deploy import DeploymentConfig, deploy  # noqa: PLC0415
    from model_deploy.checkpoints import CheckpointWriter  # noqa: PLC0415

    tf.disable_eager_execution()

    def model_fn() -> None:
        zeros = tf.zeros_initializer()
        weights = [tf.get_variable(f"w{i}", SHAPE, initializer=zeros) for i in range(COUNT)]
        tf.losses.add_loss(tf.add_n([tf.reduce_mean(tf.square(each - 1)) for each in weights]))

    optimizer = tf.train.GradientDescentOptimizer(0.1)
    model = deploy(DeploymentConfig(clone_on_cpu=True), model_fn, optimizer=optimizer)
    with tf.Session() as session, tempfile.TemporaryDirectory() as folder:
        session.run(tf.global_variables_initializer())
        run = session.make_callable(model.train_op)
        writer = CheckpointWriter(folder, 1, in_background=in_background)
        numbers = iter(range(1, 1 << 30))
        save = functools.partial(_save, run, lambda: writer.save_soon(session, next(numbers)))
        save()  # the first makes what later ones have
        writer.wait()

        def measure() -> dict[str, float]:
            found = [save() for _ in range(saves)]
            pause, lost = (statistics.median(each) for each in zip(*found, strict=True))
            return {PAUSE: 1e3 * pause, LOST: 1e3 * lost, SHARE: 10 * lost}

        requests.serve(measure)


def _save(run, save) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Saves once; returns the pause, and all that is lost, in seconds."""
    usual = statistics.median(_seconds(run) for _ in range(15))
    begin, pause = time.perf_counter(), _seconds(save)
    pause += max(0.0, _seconds(run) - usual)
    steps = 1
    while any(thread.name == "save" for thread in threading.enumerate()):
        run()
        steps += 1
    return pause, time.perf_counter() - begin - steps * usual


def _seconds(call) -> float:  # type: ignore[no-untyped-def]
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
