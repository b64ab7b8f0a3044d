"""Slim's model deployment: from a `model_fn` for one device to training on several.

    python examples/slim_quickstart.py --train_dir=quickstart_run

Its parts are those of TF-Slim's own examples: a `DeploymentConfig` that says what is placed where,
inputs with a prefetch queue on the `inputs_device`, a `model_fn` that adds a loss, and `deploy`,
whose train op goes to `slim.learning.train`.  It trains a LeNet on scikit-learn's handwritten
digits, on all GPUs, or else on two clones on the CPU.
"""

import dataclasses
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    from model_deploy import DeploymentConfig, deploy, inputs, slim, training
    from model_deploy.commands import Options, option, run_command
    from nets import nets_factory


@dataclasses.dataclass(frozen=True)
class QuickstartOptions(Options):
    """The settings of a run; each is a flag."""

    train_dir: str = option("quickstart_run", "folder for checkpoints and TensorBoard events")
    num_clones: int | None = option(None, "default: one for each GPU, or 2", minimum=1)
    batch_size: int = option(16, "images per clone and step", minimum=1)
    max_steps: int = option(100, "number of the last step", minimum=1)
    learning_rate: float = option(0.01, "learning rate", above=0)


def model_fn(queue: Any) -> None:
    """Builds a clone: called once for each of them, with its scope and its device in place."""
    images, labels = queue.dequeue()  # a batch of its own
    network = nets_factory.get_network_fn("lenet", 10, weight_decay=0.00004, is_training=True)
    logits, _ = network(images)
    slim.losses.softmax_cross_entropy(logits, slim.one_hot_encoding(labels, 10))


def train(options: QuickstartOptions) -> None:
    """Trains, and prints the accuracy on the test images."""
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    num_clones = options.num_clones or num_gpus or 2
    config = DeploymentConfig(num_clones, clone_on_cpu=num_gpus < num_clones)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        with tf.device(config.variables_device()):
            global_step = tf.train.create_global_step()
        with tf.device(config.inputs_device()):
            digits = inputs.get_dataset("digits", "train")
            batch = next(
                inputs.train_batches(digits, preprocessing="lenet", batch_size=options.batch_size)
            )
            queue = slim.prefetch_queue.prefetch_queue(
                [batch["image"], batch["label"]], capacity=2 * num_clones
            )
        optimizer = tf.train.MomentumOptimizer(options.learning_rate, momentum=0.9)
        model = deploy(config, model_fn, [queue], optimizer=optimizer)
        tf.get_logger().setLevel("INFO")  # at this level slim says how far it is
        slim.learning.train(
            model.train_op,
            options.train_dir,
            number_of_steps=options.max_steps,
            global_step=global_step,
            summary_op=model.summary_op,
            log_every_n_steps=50,
        )
    found = training.evaluate(predict, test_batches, options.train_dir)
    print(f"test accuracy at step {found.global_step}: {found.accuracy:.4f}")


def test_batches() -> Any:
    """The test images, batch by batch."""
    return next(inputs.eval_batches(inputs.get_dataset("digits", "test"), preprocessing="lenet"))


def predict(batch: Any) -> tuple[Any, Any]:
    """Logits and labels of a batch."""
    logits, _ = nets_factory.get_network_fn("lenet", 10)(batch["image"])
    return logits, batch["label"]


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    # Slim closes its writer of summaries twice.
    warnings.filterwarnings("ignore", "Attempting to use a closed FileWriter")
    return run_command(argv, QuickstartOptions, train, __doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
