"""Rate of training cifarnet on CIFAR-10, as a share of the rate on one constant batch.

    python -m benchmarks.inputs_training --data_dir=<CIFAR-10> [--rounds=7]

Both train in one process and take turns; of the rounds, the medians are compared.  Goal:
at least 97%, that is, the input never starves the step.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from model_deploy import inputs
from nets import nets_factory

tf1 = tf.compat.v1
BATCH_SIZE = 128
GOAL = 0.97


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=60, help="per round")
    options = parser.parse_args(arguments)
    tf1.disable_eager_execution()
    dataset = inputs.get_dataset("cifar10", "train", options.data_dir)
    runs = {name: trainer(dataset, name == "constant") for name in ("constant", "pipeline")}
    rates: dict[str, list[float]] = {name: [] for name in runs}
    waits = []
    for _ in range(options.rounds):
        for name, run in runs.items():
            rate, waited = measure(run, options.steps)
            rates[name].append(rate)
            if name == "pipeline":
                waits.append(waited)
    constant, pipeline = (statistics.median(rates[name]) for name in ("constant", "pipeline"))
    print(f"one constant batch: {constant:8,.0f} images/s")
    print(f"CIFAR-10 pipeline:  {pipeline:8,.0f} images/s, {pipeline / constant:.1%} of that")
    print(f"waiting for data:   {statistics.median(waits):8.2%} of the time")
    print(f"goal: at least {GOAL:.0%}: {'reached' if pipeline >= GOAL * constant else 'missed'}")


def trainer(dataset: inputs.Dataset, constant: bool) -> Callable[[], float]:
    """A function that makes one step of training and returns the seconds of waiting in it."""
    with tf.Graph().as_default() as graph:
        batches = inputs.train_batches(dataset, batch_size=BATCH_SIZE, preprocessing="cifarnet")
        batch, waited = next(batches), batches.wait_secs
        if constant:
            waited = tf.zeros([], tf.float64)
            batch = {
                key: tf1.get_variable(
                    key,
                    initializer=value,
                    trainable=False,
                    collections=[tf1.GraphKeys.LOCAL_VARIABLES],
                )
                for key, value in batch.items()
            }
        step = training_step(batch)
        session = tf1.Session(graph=graph)
        session.run(tf1.global_variables_initializer())
        session.run(tf1.tables_initializer())
        session.run(tf1.local_variables_initializer())
        run = session.make_callable([waited, step])
        return lambda: float(run()[0])


def training_step(batch: dict[str, Any]) -> Any:
    """The op of one step of gradient descent."""
    network = nets_factory.get_network_fn("cifarnet", 10, weight_decay=0.004, is_training=True)
    logits, _ = network(tf.convert_to_tensor(batch["image"]))
    tf1.losses.sparse_softmax_cross_entropy(batch["label"], logits)
    return tf1.train.GradientDescentOptimizer(0.01).minimize(tf1.losses.get_total_loss())


def measure(run: Callable[[], float], num_steps: int) -> tuple[float, float]:
    """Images per second, and the share of the time spent waiting for data."""
    for _ in range(5):
        run()
    start = time.perf_counter()
    waited = sum(run() for _ in range(num_steps))
    secs = time.perf_counter() - start
    return num_steps * BATCH_SIZE / secs, waited / secs


if __name__ == "__main__":
    main()
