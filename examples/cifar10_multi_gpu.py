"""CIFAR-10 on several GPUs, with towers written by hand: no slim, and no `deploy`.

    python examples/cifar10_multi_gpu.py --train_dir=cifar10_run --max_steps=60

Each GPU has a tower: the network on a batch of its own, its loss and its gradients.  The CPU has
the variables; it averages the gradients, so that a step is one of a batch that is as many times as
large as there are towers.  Without GPUs the towers are on logical devices of the CPU; without
`--data_dir`, a folder with CIFAR-10 in its binary files or TFRecords, the images are digits.
"""

import dataclasses
import math
import sys
from collections.abc import Sequence
from typing import Any

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    from model_deploy import DeployedModel, average_gradients, inputs, train, training
    from model_deploy.commands import option, run_command

LOSSES = tf.GraphKeys.LOSSES  # collection of all towers' losses
CPU = "/device:CPU:0"


@dataclasses.dataclass(frozen=True)
class Cifar10Options(training.LoopOptions):
    """The settings of a run, beside those of the loop; each is a flag."""

    train_dir: str = option("cifar10_run", "folder for checkpoints and TensorBoard events")
    data_dir: str | None = option(None, "folder with CIFAR-10; default: digits, without files")
    num_towers: int | None = option(None, "default: one for each GPU, or 2", minimum=1)
    batch_size: int = option(32, "images per tower and step", minimum=1)
    max_steps: int = option(100_000, "number of the last step", minimum=1)
    learning_rate: float = option(0.05, "learning rate at the start", above=0)
    epochs_per_decay: float = option(350.0, "epochs after which it falls to a tenth", above=0)
    save_summaries_steps: int | None = option(100, "steps between summaries", minimum=1)
    save_interval_steps: int | None = option(1000, "steps between checkpoints", minimum=1)


def layer(name: str, net: Any, shape: list[int], weight_decay: float = 0.0) -> Any:
    """A convolution where the weights have rank 4, else a dense layer; adds to LOSSES."""
    with tf.variable_scope(name):
        with tf.device(CPU):
            weights = tf.get_variable("weights", shape, initializer=tf.initializers.he_normal())
            biases = tf.get_variable("biases", shape[-1:], initializer=tf.zeros_initializer())
        if weight_decay:
            tf.add_to_collection(LOSSES, weight_decay * tf.nn.l2_loss(weights))
        if len(shape) == 4:
            return tf.nn.conv2d(net, weights, strides=1, padding="SAME") + biases
        return tf.matmul(net, weights) + biases


def network(batch: Any) -> tuple[Any, Any]:
    """Logits [batch, 10] of two convolutions and three dense layers; and the labels."""
    net = batch["image"]
    for name, channels in (("conv1", 32), ("conv2", 64)):
        net = tf.nn.relu(layer(name, net, [5, 5, net.shape[3], channels]))
        net = tf.nn.max_pool2d(net, ksize=3, strides=2, padding="SAME")
    net = tf.reshape(net, [-1, math.prod(net.shape[1:])])
    for name, units in (("local3", 384), ("local4", 192)):
        net = tf.nn.relu(layer(name, net, [net.shape[1], units], weight_decay=0.004))
    return layer("logits", net, [net.shape[1], 10]), batch["label"]


def tower_loss(scope: str, batch: Any) -> Any:
    """Builds the tower in the name scope `scope`; returns the sum of its losses."""
    logits, labels = network(batch)
    tf.losses.sparse_softmax_cross_entropy(labels, logits)  # adds to LOSSES, too
    # The losses of the other towers are there under their own scopes.
    return tf.add_n(tf.get_collection(LOSSES, scope))


def build(options: Cifar10Options, devices: list[str]) -> tuple[DeployedModel, Any]:
    """Builds a tower on each device; returns what `train` takes, and the learning rate."""
    step = tf.train.get_or_create_global_step()
    data, size = data_of(options, "train"), options.batch_size
    batches = inputs.train_batches(**data, batch_size=size, num_clones=len(devices), position=step)
    # In an epoch the images of all towers count.
    decay_steps = max(1, round(batches.num_batches_per_epoch * options.epochs_per_decay))
    rate = tf.train.exponential_decay(options.learning_rate, step, decay_steps, 0.1, True)
    optimizer = tf.train.GradientDescentOptimizer(rate)
    losses, gradients = [], []
    for i, device in enumerate(devices):
        # The towers after the first one use its variables.
        reused = tf.variable_scope(tf.get_variable_scope(), reuse=i > 0)
        with reused, tf.name_scope(f"tower_{i}") as scope, tf.device(device):
            losses.append(tower_loss(scope, next(batches)))
            gradients.append(optimizer.compute_gradients(losses[i]))
    averaged = average_gradients(gradients)
    loss = tf.add_n(losses) / len(devices)  # that of all towers, as the gradients are
    tf.summary.scalar("loss", loss)
    tf.summary.scalar("learning_rate", rate)
    for gradient, variable in averaged:
        tf.summary.histogram(f"{variable.op.name}/values", variable)
        tf.summary.histogram(f"{variable.op.name}/gradients", gradient)
    with tf.control_dependencies([loss]):  # before the variables change
        update = optimizer.apply_gradients(averaged, global_step=step)
    with tf.control_dependencies([update]):
        average = training.moving_average_update(0.9999, step)()
    with tf.control_dependencies([average]):
        train_op = tf.identity(loss, "train_op")
    return DeployedModel(train_op, tf.summary.merge_all(), loss, clones=[]), rate


def run(options: Cifar10Options) -> None:
    """Trains from the newest checkpoint on, and prints the accuracy of the averaged weights."""
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    num_towers = options.num_towers or num_gpus or 2
    kind = "GPU" if num_gpus >= num_towers else "CPU"
    config = tf.ConfigProto(allow_soft_placement=True, device_count={"CPU": num_towers})
    with tf.Graph().as_default(), tf.device(CPU):
        tf.set_random_seed(1)
        model, rate = build(options, [f"/device:{kind}:{i}" for i in range(num_towers)])
        train(
            model,
            options.train_dir,
            max_steps=options.max_steps,
            images_per_step=options.batch_size * num_towers,
            learning_rate=rate,
            session_config=config,
            **options.part(training.LoopOptions),
        )
    test = data_of(options, "test")
    found = training.evaluate(
        network, lambda: next(inputs.eval_batches(**test)), options.train_dir, use_averages=True
    )
    print(f"test accuracy at step {found.global_step}: {found.accuracy:.4f}")


def data_of(options: Cifar10Options, split: str) -> dict[str, Any]:
    """CIFAR-10 from its files, or else digits, which are not mirrored: arguments for batches."""
    name, family = ("cifar10", "cifarnet") if options.data_dir else ("digits", "lenet")
    dataset = inputs.get_dataset(name, split, options.data_dir)
    return {"dataset": dataset, "preprocessing": family}


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    return run_command(argv, Cifar10Options, run, __doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
