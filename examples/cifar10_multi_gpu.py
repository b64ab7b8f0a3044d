"""CIFAR-10 on several GPUs, with towers written by hand: no slim, and no `deploy`.

    python examples/cifar10_multi_gpu.py --train_dir=cifar10_run --max_steps=60

The variables are on the CPU.  Each GPU has a tower: the network on a batch of its own, its loss
and its gradients.  The CPU averages the gradients and updates the variables, so that a step is
one step of a batch that is as many times as large as there are towers.

`--data_dir` is a folder with CIFAR-10, as binary files or TFRecords; without it the images are
scikit-learn's handwritten digits.  Without GPUs the towers are on logical devices of the CPU.
"""

import dataclasses
import math
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from train_image_classifier import prepare_tensorflow, without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow.compat.v1 as tf

    from model_deploy import average_gradients, inputs, training
    from model_deploy.command_line import run_command
    from model_deploy.options import Options, option

NUM_CLASSES = 10
LOSSES = "losses"  # collection of all towers' losses
WEIGHT_DECAY = 0.004  # weight of the L2 losses, those of the dense layers
CPU = "/device:CPU:0"
LOG_STEPS, SUMMARY_STEPS, SAVE_STEPS = 10, 100, 1000  # steps from one to the next


@dataclasses.dataclass(frozen=True)
class Cifar10Options(Options):
    """The settings of a run; each is a flag."""

    train_dir: str = option("cifar10_run", "folder for checkpoints and TensorBoard events")
    data_dir: str | None = option(None, "folder with CIFAR-10; default: digits, without files")
    num_towers: int | None = option(None, "default: one for each GPU, or 2", minimum=1)
    batch_size: int = option(32, "images per tower and step", minimum=1)
    max_steps: int = option(100_000, "number of the last step", minimum=1)
    learning_rate: float = option(0.05, "learning rate at the start", above=0)
    epochs_per_decay: float = option(350.0, "epochs after which it falls to a tenth", above=0)


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


def network(images: Any) -> Any:
    """Logits [batch, classes] of two convolutions and three dense layers."""
    net = images
    for name, channels in (("conv1", 32), ("conv2", 64)):
        net = tf.nn.relu(layer(name, net, [5, 5, net.shape[3], channels]))
        net = tf.nn.max_pool2d(net, ksize=3, strides=2, padding="SAME")
    net = tf.reshape(net, [-1, math.prod(net.shape[1:])])
    for name, units in (("local3", 384), ("local4", 192)):
        net = tf.nn.relu(layer(name, net, [net.shape[1], units], WEIGHT_DECAY))
    return layer("logits", net, [net.shape[1], NUM_CLASSES])


def tower_loss(scope: str, batch: Any) -> Any:
    """Builds the tower in the name scope `scope`; returns the sum of its losses."""
    logits = network(batch["image"])
    entropies = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["label"], logits)
    tf.add_to_collection(LOSSES, tf.reduce_mean(entropies))
    # The losses of the other towers are in the collection, too, under their own scopes.
    return tf.add_n(tf.get_collection(LOSSES, scope))


def decayed_rate(options: Cifar10Options, num_examples: int, num_towers: int, step: Any) -> Any:
    """The learning rate; in an epoch the images of all towers count."""
    steps_per_epoch = num_examples / (options.batch_size * num_towers)
    decay_steps = max(1, round(steps_per_epoch * options.epochs_per_decay))
    return tf.train.exponential_decay(options.learning_rate, step, decay_steps, 0.1, staircase=True)


def build(options: Cifar10Options, devices: list[str]) -> tuple[Any, Any]:
    """Builds a tower on each device; returns the op that makes a step, and the loss, a scalar."""
    dataset, family = get_dataset(options, "train")
    step = tf.train.get_or_create_global_step()
    rate = decayed_rate(options, dataset.num_examples, len(devices), step)
    optimizer = tf.train.GradientDescentOptimizer(rate)
    batches = inputs.train_batches(
        dataset,
        preprocessing=family,
        batch_size=options.batch_size,
        num_clones=len(devices),
        position=step,
    )
    losses, gradients = [], []
    for i, device in enumerate(devices):
        # The towers after the first one use its variables.
        with (
            tf.variable_scope(tf.get_variable_scope(), reuse=i > 0),
            tf.name_scope(f"tower_{i}") as scope,
            tf.device(device),
        ):
            loss = tower_loss(scope, next(batches))
            gradients.append(optimizer.compute_gradients(loss))
            losses.append(loss)
    averaged = average_gradients(gradients)
    loss = tf.add_n(losses) / len(devices)  # that of all towers, as the gradients are
    tf.summary.scalar("loss", loss)
    tf.summary.scalar("learning_rate", rate)
    for gradient, variable in averaged:
        tf.summary.histogram(variable.op.name, variable)
        tf.summary.histogram(f"{variable.op.name}/gradients", gradient)
    with tf.control_dependencies([optimizer.apply_gradients(averaged, global_step=step)]):
        averages = tf.train.ExponentialMovingAverage(0.9999, step)
        return averages.apply(tf.trainable_variables()), loss


def train(options: Cifar10Options) -> None:
    """Trains from the newest checkpoint on, and prints the accuracy of the averaged weights."""
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    num_towers = options.num_towers or num_gpus or 2
    kind = "GPU" if num_gpus >= num_towers else "CPU"
    devices = [f"/device:{kind}:{i}" for i in range(num_towers)]
    config = tf.ConfigProto(allow_soft_placement=True, device_count={"CPU": num_towers})
    with tf.Graph().as_default(), tf.device(CPU):
        tf.set_random_seed(1)
        train_op, loss = build(options, devices)
        with tf.Session(config=config) as session:
            run_steps(session, train_op, loss, options, options.batch_size * num_towers)
    found = training.evaluate(
        lambda batch: (network(batch["image"]), batch["label"]),
        lambda: test_batches(options),
        options.train_dir,
        use_averages=True,
    )
    print(f"test accuracy at step {found.global_step}: {found.accuracy:.4f}")


def run_steps(session: Any, train_op: Any, loss: Any, options: Cifar10Options, images: int) -> None:
    """Makes the steps, of `images` images each, up to the last one.

    Raises:
      FloatingPointError: if the loss becomes NaN or infinite; nothing is saved then.
    """
    saver, summary_op = tf.train.Saver(), tf.summary.merge_all()
    writer = tf.summary.FileWriter(options.train_dir, session.graph)
    session.run(tf.global_variables_initializer())
    if newest := tf.train.latest_checkpoint(options.train_dir):
        saver.restore(session, newest)
    session.run(tf.tables_initializer())  # starts the inputs, at the step that was restored
    first = session.run(tf.train.get_global_step())
    began, logged = time.perf_counter(), first
    for step in range(first + 1, options.max_steps + 1):
        is_last = step == options.max_steps
        summary = [summary_op] if step % SUMMARY_STEPS == 0 or is_last else []
        _, value, *summary = session.run([train_op, loss, *summary])
        if not math.isfinite(value):
            raise FloatingPointError(f"the loss must be finite, got {value} at step {step}")
        if step % LOG_STEPS == 0 or is_last:
            secs = (time.perf_counter() - began) / (step - logged)  # of a step of all towers
            rates = f"{images / secs:.1f} examples/sec; {secs:.4f} sec/batch"
            print(f"step {step}, loss = {value:.4f} ({rates})", flush=True)
            began, logged = time.perf_counter(), step
        for each in summary:
            writer.add_summary(each, step)
        if step % SAVE_STEPS == 0 or is_last:
            saver.save(session, os.path.join(options.train_dir, "model.ckpt"), step)
    writer.close()


def test_batches(options: Cifar10Options) -> Any:
    """The test images, batch by batch."""
    dataset, family = get_dataset(options, "test")
    return next(inputs.eval_batches(dataset, preprocessing=family))


def get_dataset(options: Cifar10Options, split: str) -> tuple[inputs.Dataset, str]:
    """CIFAR-10 from its files, or else digits; and the preprocessing: digits are not mirrored."""
    name, family = ("cifar10", "cifarnet") if options.data_dir else ("digits", "lenet")
    return inputs.get_dataset(name, split, options.data_dir), family


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    prepare_tensorflow()
    return run_command(argv, Cifar10Options, train, __doc__)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
