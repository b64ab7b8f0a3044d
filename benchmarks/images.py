"""The images that all contenders are trained on, and TensorFlow's usual input of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.sizes import IMAGE_SIZE, PADDING


def get_dataset(data_dir: str | None) -> Any:
    """The training images of CIFAR-10, or of digits without a folder: an `inputs.Dataset`."""
    # A peer that needs no images shall not wait for this import.
    from model_deploy import inputs  # noqa: PLC0415

    if data_dir is None:
        return inputs.get_dataset("digits", "train")
    return inputs.get_dataset("cifar10", "train", data_dir)


def read_arrays(data_dir: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [n, height, width, channels] and labels int64 [n]."""
    images, labels = get_dataset(data_dir).source.arrays
    return images, labels


def shift_and_mirror(image: Any, padding: int, size: int, mode: str = "CONSTANT") -> Any:
    """A part of a padded image [height, width, channels], mirrored half of the time."""
    image = tf.pad(image, [[padding, padding], [padding, padding], [0, 0]], mode)
    image = tf.image.random_crop(image, [size, size, image.shape[-1]])
    return tf.image.random_flip_left_right(image)


def augment(image: Any) -> Any:
    """The cifarnet augmentation of a single image, uint8 [height, width, channels]."""
    image = shift_and_mirror(tf.cast(image, tf.float32), PADDING, IMAGE_SIZE)
    image = tf.image.random_contrast(tf.image.random_brightness(image, 63), 0.2, 1.8)
    return tf.image.per_image_standardization(image)


def usual_input(
    data_dir: str | None, batch_size: int, augment_one: Callable[[Any], Any] = augment
) -> Any:
    """A `tf.data.Dataset` of batches, as TensorFlow's guides advise to build it.

    Images and labels in memory are shuffled, augmented one by one by several threads, put into
    batches, and prefetched.

    Args:
      data_dir: folder with CIFAR-10, or None for digits.
      batch_size: images in a batch.
      augment_one: takes one image, uint8 [height, width, channels]; returns what is trained on.

    Returns:
      A dataset without end of `(images, labels)`: float32 [batch_size, 32, 32, channels] and
      int64 [batch_size].
    """
    images, labels = read_arrays(data_dir)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(images)).repeat()
    dataset = dataset.map(
        lambda image, label: (augment_one(image), label), num_parallel_calls=tf.data.AUTOTUNE
    )
    return dataset.batch(batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
