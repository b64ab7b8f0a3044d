"""Keras' `fit` on what `examples/keras_cifar10.py` trains on: the peer of `cifar10_accuracy`."""

import sys
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from benchmarks import images, keras_peer
from benchmarks.sizes import PADDING
from examples import keras_cifar10
from model_deploy import inputs
from model_deploy.commands import parse_options

keras = tf.keras
CLONES = 2


class Evaluation(keras.callbacks.Callback):
    """Prints the test accuracy at intervals and at the last step."""

    def __init__(self, tested: Any, test: Any, interval: int, last: int) -> None:
        super().__init__()
        self._tested, self._test = tested, test
        self._interval, self._last, self._step = interval, last, 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._step += 1
        if self._step % self._interval == 0 or self._step == self._last:
            found = self._tested.evaluate(self._test, verbose=0, return_dict=True)
            print(f"evaluation at step {self._step}:  accuracy {found['accuracy']:.4f}", flush=True)


def augment(image: Any) -> Any:
    """A shifted, mirrored part of a single image, uint8 [h, w, channels], standardized."""
    image = images.shift_and_mirror(image, PADDING, image.shape[0], "REFLECT")
    return tf.image.per_image_standardization(image)


def held_out_batches(data_dir: str | None) -> Any:
    """The test images in order, standardized."""
    name = "digits" if data_dir is None else "cifar10"
    pixels, labels = inputs.get_dataset(name, "test", data_dir).source.arrays
    dataset = tf.data.Dataset.from_tensor_slices((pixels, labels))
    return dataset.map(lambda each, y: (tf.image.per_image_standardization(each), y)).batch(500)


def main(arguments: Sequence[str]) -> None:
    """Trains as the example does by default, with its flags, and prints accuracies."""
    options = parse_options(["fit", *arguments], keras_cifar10.KerasOptions)
    keras.utils.set_random_seed(options.seed)
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    with tf.distribute.MirroredStrategy(keras_peer.use_logical_cpus(CLONES)).scope():
        model = keras_cifar10.make_model(options)
        model.compile(
            keras.optimizers.SGD(keras_cifar10.one_cycle(options), momentum=0.9, nesterov=True),
            keras_cifar10.smoothed_cross_entropy,
            metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")],
        )
        tested = keras_cifar10.model_to_test(options, model)
        tested.compile(metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")])
    assert options.eval_every_n_steps is not None
    evaluation = Evaluation(
        tested, held_out_batches(options.data_dir), options.eval_every_n_steps, options.max_steps
    )
    model.fit(
        images.usual_input(options.data_dir, CLONES * options.batch_size, augment),
        steps_per_epoch=options.max_steps,
        callbacks=[evaluation],
        verbose=0,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
