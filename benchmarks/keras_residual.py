"""A residual network of Keras, in graph mode and under Keras' `fit`."""

from typing import Any

import keras
import tensorflow as tf

import model_deploy
from benchmarks import images, keras_peer
from benchmarks.child import Requests
from benchmarks.sizes import BATCH_SIZE, IMAGE_SIZE, LEARNING_RATE
from model_deploy.keras import deploy_model

WEIGHT_DECAY = 0.0005
WIDTH = 16
CLASSES = 10


def network(channels: int) -> Any:
    """7 convolutions in 3 stages, for images [32, 32, channels]; logits [batch, 10]."""
    layers = keras.layers
    decay = keras.regularizers.L2(WEIGHT_DECAY / 2)

    def conv(net: Any, depth: int, size: int = 3, strides: int = 1) -> Any:
        net = layers.Conv2D(depth, size, strides, "same", use_bias=False, kernel_regularizer=decay)(
            net
        )
        return layers.BatchNormalization(momentum=0.9)(net)

    images = keras.Input((IMAGE_SIZE, IMAGE_SIZE, channels))
    net = layers.ReLU()(conv(images, WIDTH))
    for depth, strides in ((WIDTH, 1), (2 * WIDTH, 2), (4 * WIDTH, 2)):
        shortcut = net
        if depth != net.shape[-1]:
            shortcut = conv(net, depth, 1, strides)
        inner = layers.ReLU()(conv(net, depth, 3, strides))
        net = layers.ReLU()(layers.Add()([shortcut, conv(inner, depth)]))
    net = layers.Dropout(0.1)(layers.GlobalAveragePooling2D()(net))
    return keras.Model(images, layers.Dense(CLASSES, kernel_regularizer=decay)(net))


def loss() -> Any:
    """Cross entropy of logits."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def deploy(num_clones: int, data_dir: str | None, channels: int) -> Any:
    """This project's deployment; the clones divide a batch of `BATCH_SIZE`."""
    return deploy_model(
        model_deploy.DeploymentConfig(num_clones, clone_on_cpu=True),
        lambda: network(channels),
        loss(),
        keras.optimizers.SGD(LEARNING_RATE),
        images.usual_input(data_dir, BATCH_SIZE // num_clones),
    )


def model_fn() -> None:
    """For the workers of a cluster: each has an input of its own, of digits."""
    batches = tf.compat.v1.data.make_initializable_iterator(images.usual_input(None, BATCH_SIZE))
    tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS, batches.initializer)
    pixels, labels = batches.get_next()
    logits = network(pixels.shape[-1])(pixels, training=True)
    tf.compat.v1.losses.add_loss(loss()(labels, logits))


def serve(
    requests: Requests,
    *,
    num_clones: int,
    steps: int,
    data_dir: str | None,
    channels: int,
    jit_compile: bool | str = "auto",
) -> None:
    """Trains `steps` steps of `fit` per request; answers "images/s"."""
    names = keras_peer.use_logical_cpus(num_clones)
    with tf.distribute.MirroredStrategy(names).scope():
        model = network(channels)
        optimizer = keras.optimizers.SGD(LEARNING_RATE)
        model.compile(optimizer, loss(), jit_compile=jit_compile)
    dataset = images.usual_input(data_dir, BATCH_SIZE)
    clock = keras_peer.Clock()

    def fit(num_steps: int) -> None:
        model.fit(dataset, steps_per_epoch=num_steps, callbacks=[clock], verbose=0)

    def measure() -> dict[str, float]:
        # The first step of a `fit` starts its iterator and is not timed.
        fit(1 + steps)
        return {"images/s": BATCH_SIZE * clock.steps_per_sec}

    fit(1)
    requests.serve(measure)
