"""A Keras model on CIFAR-10: on several clones, or, by one flag, on parameter servers.

    python examples/keras_cifar10.py --train_dir=keras_run --max_steps=120

The model is a ResNet-9, its loss, optimizer and metrics are Keras' own, and
`deploy_model` takes them as `model.compile` would.  Each clone trains on a batch of its own;
without GPUs there are two on the CPU.

    python examples/keras_cifar10.py --train_dir=keras_ps_run --num_ps=1

starts a parameter server and two workers, processes on this machine, which train the same model
without waiting for each other.  On several machines, start one process for each of them with its
part of a cluster, as for `examples/mnist_distributed.py`.

    python examples/keras_cifar10.py --data_dir=DIR --train_dir=cifar10_run --precision=bfloat16

trains on CIFAR-10 from the files in a folder, with four times as many channels or more;
without `--data_dir` the images are scikit-learn's digits.  At the end the weights are in
`model.weights.h5` in the train_dir, for `model.load_weights`.
"""

import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import keras
    import tensorflow.compat.v1 as tf

    from model_deploy import DeploymentConfig, inputs, train, training
    from model_deploy.cluster import ClusterOptions, end_process
    from model_deploy.commands import named_as, option, run_command
    from model_deploy.keras import deploy_model, export_checkpoint
    from model_deploy.launch import launched_again
    from model_deploy.settings import PRECISIONS

CLASSES = 10
LABEL_SMOOTHING = 0.2


@dataclasses.dataclass(frozen=True)
class KerasOptions(ClusterOptions, training.LoopOptions):
    """The settings of a run, beside those of the cluster and the loop; each is a flag."""

    train_dir: str = option("keras_run", "folder for checkpoints, events and weights")
    data_dir: str | None = option(None, "folder with CIFAR-10; default: digits, without files")
    num_clones: int | None = option(
        None, "default: one for each GPU, or 2, or 1 in a cluster", minimum=1
    )
    num_ps: int = option(0, "start so many parameter servers, and workers", minimum=0)
    num_workers: int = option(2, "workers to start with --num_ps", minimum=1)
    batch_size: int = option(128, "images per clone and step", minimum=1)
    max_steps: int = option(
        4687, "number of the last step; default: 24 epochs of CIFAR-10", minimum=1
    )
    precision: str = option(
        "float32", "arithmetic of convolutions and products", choices=PRECISIONS
    )
    seed: int = option(1, "seed of initial values and of the order of images", minimum=0)
    learning_rate: float = option(0.4, "highest learning rate, after a fifth", above=0)
    weight_decay: float = option(0.0005, "weight of the L2 loss", minimum=0)
    log_every_n_steps: int = option(20, "steps from one line to the next", minimum=1)


def residual_network(shape: Sequence[int], weight_decay: float, channels: Sequence[int]) -> Any:
    """ResNet-9 as anybody writes it in Keras: 8 convolutions, 2 shortcuts, logits [batch, 10]."""
    layers = keras.layers
    decay = keras.regularizers.L2(weight_decay / 2)

    def conv(net: Any, depth: int, *, halve: bool = False) -> Any:
        net = layers.Conv2D(
            *(depth, 3),
            padding="same",
            use_bias=False,
            kernel_initializer="he_normal",
            kernel_regularizer=decay,
        )(net)
        net = layers.MaxPooling2D()(net) if halve else net
        return layers.ReLU()(layers.BatchNormalization(momentum=0.99)(net))

    images = keras.Input(shape)
    net = conv(images, channels[0])
    for depth, has_shortcut in zip(channels[1:], (True, False, True), strict=True):
        net = conv(net, depth, halve=True)
        if has_shortcut:
            net = layers.Add()([net, conv(conv(net, depth), depth)])
    net = layers.Dense(CLASSES, use_bias=False, kernel_regularizer=decay)(
        layers.GlobalMaxPooling2D()(net)
    )
    return keras.Model(images, layers.Rescaling(0.125)(net))


def make_model(options: KerasOptions) -> Any:
    """The model for the images of the data."""
    if options.data_dir:
        return residual_network((32, 32, 3), options.weight_decay, (32, 64, 256, 256))
    return residual_network((28, 28, 1), options.weight_decay, (8, 16, 32, 64))


def model_to_test(options: KerasOptions, model: Any) -> Any:
    """Of photographs the mean of the logits of each image and of its mirror image."""
    if not options.data_dir:
        return model
    images = keras.Input(model.input_shape[1:])
    mirrored = keras.ops.flip(images, axis=2)
    return keras.Model(images, keras.layers.average([model(images), model(mirrored)]))


def run_task(options: KerasOptions) -> None:
    """Does the part of this process in its cluster; without one, trains by itself."""
    place = training.join_cluster(os.environ, options)  # a parameter server stays in there
    gpus = len(tf.config.list_physical_devices("GPU"))
    clones = options.num_clones or gpus or (2 if place.cluster is None else 1)
    with named_as(num_ps_tasks="ps_hosts", num_replicas="worker_hosts"):
        config = place.deployment(
            DeploymentConfig(clones, clone_on_cpu=not gpus, precision=options.precision)
        )
    if not place.is_chief:
        train_model(options, config, place)
        return
    with evaluator_of(options, on_cpu=not gpus) as evaluator:
        model = train_model(options, config, place, evaluator)
        found = evaluator.evaluate(options.train_dir)
    path = os.path.join(options.train_dir, "model.weights.h5")
    export_checkpoint(model, options.train_dir, path)
    print(f"test accuracy at step {found.global_step}: {found.accuracy:.4f}")


def train_model(
    options: KerasOptions,
    config: DeploymentConfig,
    place: training.Place,
    evaluator: training.Evaluator | None = None,
) -> Any:
    """Trains and returns the model; the chief has an evaluator, for `--eval_every_n_steps`."""
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        batches = inputs.train_batches(
            **data_of(options, "train"),
            batch_size=options.batch_size,
            seed=options.seed,
            **config.input_arguments(),
        )
        model = deploy_model(
            config,
            lambda: make_model(options),
            smoothed_cross_entropy,
            keras.optimizers.SGD(one_cycle(options), momentum=0.9, nesterov=True),
            batches,
            metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")],
        )
        train(
            model,
            options.train_dir,
            max_steps=options.max_steps,
            images_per_step=options.batch_size * config.num_clones,
            learning_rate=model.learning_rate,
            evaluate=None if evaluator is None else accuracy_by(evaluator),
            place=place,
            **options.part(training.LoopOptions),
        )
        return model.keras_model


def smoothed_cross_entropy(labels: Any, logits: Any) -> Any:
    """The loss of each example: a fifth of each label is shared by all classes."""
    shares = keras.ops.one_hot(keras.ops.reshape(labels, [-1]), CLASSES)
    return keras.losses.categorical_crossentropy(
        shares, logits, from_logits=True, label_smoothing=LABEL_SMOOTHING
    )


def one_cycle(options: KerasOptions) -> Any:
    """The learning rate: up for a fifth of the steps, then down along a cosine."""
    rise = max(1, options.max_steps // 5)
    return keras.optimizers.schedules.CosineDecay(
        0.0, options.max_steps - rise, warmup_target=options.learning_rate, warmup_steps=rise
    )


def evaluator_of(options: KerasOptions, *, on_cpu: bool) -> training.Evaluator:
    """Counts how many of the test images a checkpoint of the model gets right."""
    test = data_of(options, "test")

    def predict(batch: Any) -> tuple[Any, Any]:
        model = model_to_test(options, make_model(options))
        return model(batch["image"], training=False), batch["label"]

    config = DeploymentConfig(clone_on_cpu=on_cpu, precision=options.precision)
    return training.Evaluator(predict, lambda: next(inputs.eval_batches(**test)), config=config)


def accuracy_by(evaluator: training.Evaluator) -> Callable[[str], dict[str, float]]:
    """What the loop calls to evaluate a checkpoint."""
    return lambda checkpoint: {"accuracy": evaluator.evaluate(checkpoint).accuracy}


def data_of(options: KerasOptions, split: str) -> dict[str, Any]:
    """CIFAR-10 from its files, or else digits, which are not mirrored: arguments for batches."""
    name, family = ("cifar10", "padded_crop") if options.data_dir else ("digits", "lenet")
    dataset = inputs.get_dataset(name, split, options.data_dir)
    return {"dataset": dataset, "preprocessing": family}


def run(options: KerasOptions, argv: Sequence[str]) -> None:
    """Trains, with `--num_ps` by processes that this one starts with the same flags."""
    if not launched_again(os.environ, options, argv):
        run_task(options)


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    return run_command(argv, KerasOptions, lambda options: run(options, argv), __doc__)


if __name__ == "__main__":
    end_process(main(sys.argv))
