"""Steps per second of training loops around one and the same graph.

    python -m benchmarks.loop [--rounds=5]

The loops are `model_deploy.train`, `slim.learning.train`, `MonitoredTrainingSession` and, as
the limit, a bare loop over `Session.make_callable`; all with their logging, summaries and
checkpoints at default intervals.  They take turns in one process, on a tiny network with
two clones and on cifarnet; of the rounds, the medians count.  Goals for `train`: 3 times
slim and 2 times the monitored session on the tiny network, and 80% of the bare loop;
97% of the bare loop on cifarnet.
"""

import argparse
import contextlib
import io
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

import model_deploy
from model_deploy import slim
from nets import nets_factory

tf1 = tf.compat.v1
# Steps that are not timed: the first ones are slower.
WARM_UP = 20


class Network(NamedTuple):
    """What is trained, on how many clones, and for how many timed steps."""

    model_fn: Callable[[], None]
    num_clones: int
    steps: int
    goals: dict[str, float]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints a table per network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    networks = {
        "tiny, 2 clones": Network(
            tiny, 2, 2000, {"slim.learning.train": 3, "MonitoredTrainingSession": 2, "bare": 0.8}
        ),
        "cifarnet": Network(cifarnet, 1, 40, {"bare": 0.97}),
    }
    for name, network in networks.items():
        rates: dict[str, list[float]] = {loop: [] for loop in LOOPS}
        for _ in range(options.rounds):
            for loop in LOOPS:
                rates[loop].append(steps_per_sec(loop, network))
        report(name, rates, network.goals)


def report(name: str, rates: dict[str, list[float]], goals: dict[str, float]) -> None:
    """Prints medians, ranges, ratios and whether the goals are reached."""
    medians = {loop: statistics.median(each) for loop, each in rates.items()}
    print(f"{name:26} {'steps/s':>9} {'lowest':>9} {'highest':>9}  train is")
    for loop, each in rates.items():
        ratio = medians["train"] / medians[loop]
        goal = goals.get(loop)
        verdict = (
            "" if goal is None else f" (goal {goal}: {'reached' if ratio >= goal else 'short'})"
        )
        print(
            f"  {loop:24} {medians[loop]:9,.1f} {min(each):9,.1f} {max(each):9,.1f}"
            f"  {ratio:.2f} times{verdict}"
        )


def steps_per_sec(loop: str, network: Network) -> float:
    """Builds the graph anew and trains it with one of the loops."""
    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        tf1.set_random_seed(1)
        config = model_deploy.DeploymentConfig(num_clones=network.num_clones, clone_on_cpu=True)
        optimizer = tf1.train.GradientDescentOptimizer(0.01)
        model = model_deploy.deploy(config, network.model_fn, optimizer=optimizer)
        clock = Clock(network.steps)
        with contextlib.redirect_stderr(io.StringIO()):
            LOOPS[loop](model, folder, clock)
        return network.steps / (clock.ended - clock.began)


class Clock(tf1.train.SessionRunHook):
    """Notes the times before the first and after the last timed step."""

    def __init__(self, steps: int) -> None:
        self.last = WARM_UP + steps
        self.began = self.ended = 0.0

    def due(self, step: int) -> bool:
        """Only where a time is noted."""
        return step in (WARM_UP, self.last)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.note(run_context.report.step)

    def note(self, step: int) -> None:
        """Notes the time after a step."""
        if step == WARM_UP:
            self.began = time.perf_counter()
        elif step == self.last:
            self.ended = time.perf_counter()


def run_train(model: Any, folder: str, clock: Clock) -> None:
    """This project's loop."""
    model_deploy.train(model, folder, max_steps=clock.last, hooks=[clock])


def run_slim(model: Any, folder: str, clock: Clock) -> None:
    """TF-Slim's loop."""
    steps = iter(range(1, clock.last + 1))

    def step_fn(session: Any, *arguments: Any) -> Any:
        result = slim.learning.train_step(session, *arguments)
        clock.note(next(steps))
        return result

    slim.learning.train(
        model.train_op,
        folder,
        number_of_steps=clock.last,
        summary_op=model.summary_op,
        train_step_fn=step_fn,
        log_every_n_steps=10,
    )


def run_monitored(model: Any, folder: str, clock: Clock) -> None:
    """TensorFlow's monitored session, with its default hooks."""
    with tf1.train.MonitoredTrainingSession(checkpoint_dir=folder) as session:
        for step in range(1, clock.last + 1):
            session.run(model.train_op)
            clock.note(step)


def run_bare(model: Any, folder: str, clock: Clock) -> None:
    """A callable in a loop, and nothing else."""
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        step_fn = session.make_callable(model.train_op)
        for step in range(1, clock.last + 1):
            step_fn()
            clock.note(step)


LOOPS: dict[str, Callable[[Any, str, Clock], None]] = {
    "train": run_train,
    "slim.learning.train": run_slim,
    "MonitoredTrainingSession": run_monitored,
    "bare": run_bare,
}


def tiny() -> None:
    """Ten numbers, one layer."""
    images, labels = tf.ones([8, 10]), tf.zeros([8], tf.int64)
    tf1.losses.sparse_softmax_cross_entropy(labels, slim.fully_connected(images, 4))


def cifarnet() -> None:
    """A batch of 128 images."""
    network = nets_factory.get_network_fn("cifarnet", 10, weight_decay=0.004, is_training=True)
    logits, _ = network(tf.constant(0.5, tf.float32, [128, 32, 32, 3]))
    tf1.losses.sparse_softmax_cross_entropy(tf.zeros([128], tf.int64), logits)


if __name__ == "__main__":
    main()
