"""Keras' `fit` on what `examples/keras_cifar10.py` trains on: the peer of `cifar10_accuracy`."""

import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from benchmarks import images, keras_peer
from benchmarks.sizes import PADDING
from examples import keras_cifar10
from model_deploy import inputs
from model_deploy.commands import option, parse_options

keras = tf.keras
CLONES = 2
_TRIAL_STEPS = 60


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


@dataclasses.dataclass(frozen=True)
class FitOptions(keras_cifar10.KerasOptions):
    """The settings of the example, and for how long."""

    minutes: float | None = option(
        None, "as many steps as it makes in these; default: --max_steps of them", above=0
    )


def compiled_model(options: FitOptions) -> tuple[Any, Any]:
    """The model, ready for `fit`, and the one to be tested."""
    keras.utils.set_random_seed(options.seed)
    model = keras_cifar10.make_model(options)
    model.compile(
        keras.optimizers.SGD(keras_cifar10.one_cycle(options), momentum=0.9, nesterov=True),
        keras_cifar10.smoothed_cross_entropy,
        metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")],
    )
    tested = keras_cifar10.model_to_test(options, model)
    tested.compile(metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")])
    return model, tested


def steps_in_time(options: FitOptions, minutes: float, data: Any) -> int:
    """How many steps a model makes in the minutes, by a trial with one that is thrown away."""
    clock = keras_peer.Clock()
    model, _ = compiled_model(options)
    model.fit(data, steps_per_epoch=_TRIAL_STEPS, callbacks=[clock], verbose=0)
    return max(2, round(minutes * 60 * clock.steps_per_sec))


def main(arguments: Sequence[str]) -> None:
    """Trains as the example does by default, with its flags, and prints accuracies."""
    options = parse_options(["fit", *arguments], FitOptions)
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    strategy = tf.distribute.MirroredStrategy(keras_peer.use_logical_cpus(CLONES))
    data = images.usual_input(options.data_dir, CLONES * options.batch_size, augment)
    with strategy.scope():
        if options.minutes is not None:
            steps = steps_in_time(options, options.minutes, data)
            options = dataclasses.replace(options, max_steps=steps)
            print(f"{steps} steps in {options.minutes:g} minutes", flush=True)
        model, tested = compiled_model(options)
    assert options.eval_every_n_steps is not None
    evaluation = Evaluation(
        tested, held_out_batches(options.data_dir), options.eval_every_n_steps, options.max_steps
    )
    model.fit(data, steps_per_epoch=options.max_steps, callbacks=[evaluation], verbose=0)


if __name__ == "__main__":
    main(sys.argv[1:])
