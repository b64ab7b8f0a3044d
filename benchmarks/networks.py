"""What is trained in graph mode: each function builds a model in the default graph."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

import model_deploy
from benchmarks import images
from benchmarks.sizes import (
    BATCH_SIZE,
    IMAGE_SIZE,
    LEARNING_RATE,
    TINY_BATCH_SIZE,
    TINY_CLASSES,
    TINY_INPUTS,
    WEIGHT_DECAY,
)
from model_deploy import inputs, slim

tf1 = tf.compat.v1


def tiny(num_clones: int) -> model_deploy.DeployedModel:
    """Ten numbers, one layer, no input: what is left is the cost of a step."""

    def model_fn() -> None:
        inputs_ = tf.ones([TINY_BATCH_SIZE, TINY_INPUTS])
        labels = tf.zeros([TINY_BATCH_SIZE], tf.int64)
        logits = slim.fully_connected(inputs_, TINY_CLASSES, activation_fn=None)
        tf1.losses.sparse_softmax_cross_entropy(labels, logits)

    return _deploy(num_clones, model_fn)


def cifarnet(num_clones: int, data_dir: str | None) -> model_deploy.DeployedModel:
    """cifarnet with this project's input; the clones share a batch of `BATCH_SIZE`."""
    return cifarnet_on(cifarnet_batches(num_clones, data_dir), num_clones)


def cifarnet_batches(num_clones: int, data_dir: str | None) -> Any:
    """This project's input of `num_clones` clones, which divide a batch of `BATCH_SIZE`."""
    return inputs.train_batches(
        images.get_dataset(data_dir),
        batch_size=BATCH_SIZE // num_clones,
        num_clones=num_clones,
        preprocessing="cifarnet",
        image_size=IMAGE_SIZE,
    )


def cifarnet_on(batches: Any, num_clones: int) -> model_deploy.DeployedModel:
    """cifarnet on what `cifarnet_batches` returned."""

    def model_fn() -> None:
        batch = next(batches)
        cifarnet_loss(batch["image"], batch["label"])

    return _deploy(num_clones, model_fn)


def cifarnet_on_constant(channels: int) -> model_deploy.DeployedModel:
    """cifarnet on one constant batch, which costs nothing to read."""

    def model_fn() -> None:
        # Variables: what is computed from constants alone would be computed just once.
        batch = tf1.get_variable(
            "batch",
            initializer=tf.random.uniform([BATCH_SIZE, IMAGE_SIZE, IMAGE_SIZE, channels]),
            trainable=False,
        )
        cifarnet_loss(batch, tf.zeros([BATCH_SIZE], tf.int64))

    return _deploy(1, model_fn)


def cifarnet_loss(batch: Any, labels: Any) -> Any:
    """Builds the network and adds its losses to their collections; returns the cross entropy."""
    # The tiny network starts without all others.
    from nets import nets_factory  # noqa: PLC0415

    network = nets_factory.get_network_fn("cifarnet", 10, WEIGHT_DECAY, is_training=True)
    logits, _ = network(tf.convert_to_tensor(batch))
    return tf1.losses.sparse_softmax_cross_entropy(labels, logits)


def cifarnet_towers(num_towers: int, data_dir: str | None) -> Any:
    """cifarnet as TensorFlow's tutorial trains it on several devices: towers written by hand.

    Returns:
      The op of a step.
    """
    dataset = images.usual_input(data_dir, BATCH_SIZE // num_towers)
    iterator = tf1.data.make_initializable_iterator(dataset)
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    optimizer = tf1.train.GradientDescentOptimizer(LEARNING_RATE)
    gradients: list[Any] = []
    for tower in range(num_towers):
        with (
            tf1.variable_scope(tf1.get_variable_scope(), reuse=tower > 0),
            tf.name_scope(f"tower_{tower}"),
        ):
            loss = cifarnet_loss(*iterator.get_next())
            # Those of the weights, which are shared: every tower counts all of them.
            decay = tf1.losses.get_regularization_losses()
            gradients.append(optimizer.compute_gradients(tf.add_n([loss, *decay])))
    averaged = [
        (tf.add_n([gradient for gradient, _ in each]) / num_towers, each[0][1])
        for each in zip(*gradients, strict=True)
    ]
    return optimizer.apply_gradients(averaged, tf1.train.get_or_create_global_step())


def _deploy(num_clones: int, model_fn: Callable[[], None]) -> model_deploy.DeployedModel:
    tf1.set_random_seed(1)
    config = model_deploy.DeploymentConfig(num_clones=num_clones, clone_on_cpu=True)
    optimizer = tf1.train.GradientDescentOptimizer(LEARNING_RATE)
    return model_deploy.deploy(config, model_fn, optimizer=optimizer)
