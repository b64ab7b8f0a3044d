"""MNIST on parameter servers and workers: asynchronous training by several processes.

    python -m model_deploy.launch --num_workers=2 --num_ps=1 -- \
        python examples/mnist_distributed.py --train_dir=mnist_run

starts three processes on this machine.  On several machines, start one process for each host of
`--ps_hosts` and `--worker_hosts`, with its `--job_name` and its `--task_id`.

The parameter servers hold the variables.  Each worker takes batches of its own, computes
gradients and updates the variables, without waiting for the others.  Worker 0, the chief, also
initializes the variables and writes checkpoints and summaries.

`--data_dir` is a folder with the files of MNIST; without it the images are scikit-learn's digits.
"""

import dataclasses
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    from model_deploy import DeployedModel, DeploymentConfig, deploy, inputs, train, training
    from model_deploy.cluster import ClusterOptions, end_process
    from model_deploy.commands import named_as, option, run_command
    from nets import nets_factory


@dataclasses.dataclass(frozen=True)
class MnistOptions(ClusterOptions, training.LoopOptions):
    """The settings of a run, beside those of the cluster and the loop; each is a flag."""

    train_dir: str = option("mnist_run", "folder of the chief's checkpoints and summaries")
    data_dir: str | None = option(None, "folder with MNIST; default: digits, without files")
    batch_size: int = option(32, "images per worker and step", minimum=1)
    max_steps: int = option(2000, "global step at which all workers end", minimum=1)
    learning_rate: float = option(0.05, "learning rate at the start", above=0)
    epochs_per_decay: float = option(10.0, "epochs after which it falls by 5%", above=0)
    weight_decay: float = option(0.0005, "weight of the L2 loss", minimum=0)
    log_every_n_steps: int = option(100, "steps from one line to the next", minimum=1)
    save_interval_secs: float = option(60.0, "seconds between checkpoints", minimum=0)
    save_summaries_secs: float = option(60.0, "seconds between summaries", minimum=0)


def run_task(options: MnistOptions) -> None:
    """Does the part of this process."""
    place = training.join_cluster(os.environ, options)  # a parameter server stays in there
    with named_as(num_ps_tasks="ps_hosts", num_replicas="worker_hosts"):
        config = place.deployment(
            DeploymentConfig(clone_on_cpu=not tf.config.list_physical_devices("GPU"))
        )
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        model, rate = build(options, config)
        train(
            model,
            options.train_dir,
            max_steps=options.max_steps,
            images_per_step=options.batch_size,
            learning_rate=rate,
            place=place,
            **options.part(training.LoopOptions),
        )
    if place.is_chief:
        found = training.evaluate(predict, lambda: test_batches(options), options.train_dir)
        print(f"test accuracy at step {found.global_step}: {found.accuracy:.4f}")


def build(options: MnistOptions, config: DeploymentConfig) -> tuple[DeployedModel, Any]:
    """Builds this worker's graph: variables on the parameter servers, the rest on the worker.

    Returns:
      The model, and its learning rate.
    """
    dataset = get_dataset(options, "train")
    with tf.device(config.variables_device()):
        step = tf.train.get_or_create_global_step()
    batches = inputs.train_batches(
        dataset,
        preprocessing="lenet",
        batch_size=options.batch_size,
        **config.input_arguments(),
    )
    with tf.device(step.device):  # where the rate is needed: it does not move then
        # Every worker counts its steps in the global step, so that a step is one batch.
        decay_steps = math.ceil(
            options.epochs_per_decay * dataset.num_examples / options.batch_size
        )
        rate = tf.train.exponential_decay(options.learning_rate, step, decay_steps, 0.95, True)
        optimizer = tf.train.GradientDescentOptimizer(rate)

    def model_fn() -> None:
        network = nets_factory.get_network_fn("mnist_mlp", 10, options.weight_decay, True)
        batch = next(batches)
        logits, _ = network(batch["image"])
        tf.losses.sparse_softmax_cross_entropy(batch["label"], logits)

    return deploy(config, model_fn, optimizer=optimizer), rate


def test_batches(options: MnistOptions) -> Any:
    """The test images, batch by batch."""
    return next(inputs.eval_batches(get_dataset(options, "test"), preprocessing="lenet"))


def predict(batch: Any) -> tuple[Any, Any]:
    """Logits and labels of a batch."""
    logits, _ = nets_factory.get_network_fn("mnist_mlp", 10)(batch["image"])
    return logits, batch["label"]


def get_dataset(options: MnistOptions, split: str) -> inputs.Dataset:
    """MNIST from its files, or else digits."""
    return inputs.get_dataset("mnist" if options.data_dir else "digits", split, options.data_dir)


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    return run_command(argv, MnistOptions, run_task, __doc__)


if __name__ == "__main__":
    end_process(main(sys.argv))
