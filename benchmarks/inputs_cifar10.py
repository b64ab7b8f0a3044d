"""Images per second of input pipelines for CIFAR-10, as multiples of TF-Slim's.

    python -m benchmarks.inputs_cifar10 --data_dir=<CIFAR-10 as TFRecords> [--rounds=5]

All pipelines make batches of 128 with the full cifarnet augmentation and take turns
in one process; of the rounds, the median counts.
"""

import argparse
import contextlib
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from model_deploy import inputs, slim

tf1 = tf.compat.v1
BATCH_SIZE = 128


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=float, default=3.0, help="per pipeline and round")
    options = parser.parse_args(arguments)
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        pipelines = pipelines_to_compare(options.data_dir, folder)
        rates: dict[str, list[float]] = {name: [] for name in pipelines}
        for _ in range(options.rounds):
            for name, build in pipelines.items():
                rates[name].append(images_per_sec(build, options.secs))
    baseline = statistics.median(next(iter(rates.values())))
    print(f"{'pipeline':36} {'images/s':>9} {'lowest':>8} {'highest':>8} {'times':>6}")
    for name, each in rates.items():
        median = statistics.median(each)
        print(
            f"{name:36} {median:9,.0f} {min(each):8,.0f} {max(each):8,.0f} {median / baseline:6.2f}"
        )


def pipelines_to_compare(data_dir: str, folder: str) -> dict[str, Callable[[], Any]]:
    """Name -> function that builds a pipeline; the first one is the baseline."""
    records = inputs.get_dataset("cifar10", "train", data_dir)
    write_binary(records, pathlib.Path(folder))
    binary = inputs.get_dataset("cifar10", "train", folder)
    streamed = inputs.get_dataset("tfrecord", "train", data_dir, file_prefix="cifar10")
    return {
        "TF-Slim queue runners, TFRecords": lambda: slim_batches(data_dir, records.num_examples),
        "binary files": lambda: our_batches(binary),
        "TFRecords": lambda: our_batches(records),
        "TFRecords, decoded again each epoch": lambda: our_batches(streamed),
    }


def write_binary(dataset: inputs.Dataset, folder: pathlib.Path) -> None:
    """Writes the training images as the official binary files have them."""
    images, labels = dataset.source.arrays
    planes = images.transpose([0, 3, 1, 2]).reshape([len(images), -1])
    records = np.concatenate([labels[:, np.newaxis].astype(np.uint8), planes], axis=1)
    for number, part in enumerate(np.split(records, 5), start=1):
        (folder / f"data_batch_{number}.bin").write_bytes(part.tobytes())


def our_batches(dataset: inputs.Dataset) -> Any:
    """The batch of one clone."""
    batches = inputs.train_batches(
        dataset, batch_size=BATCH_SIZE, preprocessing="cifarnet", image_size=32
    )
    return next(batches)


def slim_batches(data_dir: str, num_examples: int) -> Any:
    """What the original training script does: queues of images, of batches, of prefetched ones."""
    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string, ""),
        "image/format": tf.io.FixedLenFeature([], tf.string, "png"),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    items = {
        "image": slim.tfexample_decoder.Image(shape=[32, 32, 3]),
        "label": slim.tfexample_decoder.Tensor("image/class/label", shape=[]),
    }
    dataset = slim.dataset.Dataset(
        data_sources=str(pathlib.Path(data_dir) / "cifar10_train*"),
        reader=tf1.TFRecordReader,
        decoder=slim.tfexample_decoder.TFExampleDecoder(features, items),
        num_samples=num_examples,
        items_to_descriptions={},
    )
    provider = slim.dataset_data_provider.DatasetDataProvider(
        dataset,
        num_readers=4,
        common_queue_capacity=20 * BATCH_SIZE,
        common_queue_min=10 * BATCH_SIZE,
    )
    image, label = provider.get(["image", "label"])
    images, labels = tf1.train.batch(
        [augment(image), label], batch_size=BATCH_SIZE, num_threads=4, capacity=5 * BATCH_SIZE
    )
    queue = slim.prefetch_queue.prefetch_queue([images, labels], capacity=2)
    return queue.dequeue()


def augment(image: Any) -> Any:
    """The cifarnet augmentation of a single image."""
    image = tf.pad(tf.cast(image, tf.float32), [[4, 4], [4, 4], [0, 0]])
    image = tf.image.random_flip_left_right(tf1.random_crop(image, [32, 32, 3]))
    image = tf.image.random_contrast(tf.image.random_brightness(image, 63), 0.2, 1.8)
    return tf.image.per_image_standardization(image)


def images_per_sec(build: Callable[[], Any], secs: float) -> float:
    """How fast a pipeline goes once its buffers are full."""
    with tf.Graph().as_default():
        ops = [tensor.op for tensor in tf.nest.flatten(build())]
        with running_session() as session:
            run = session.make_callable(ops)
            for _ in range(50):
                run()
            steps, start = 0, time.perf_counter()
            while time.perf_counter() - start < secs:
                run()
                steps += 1
            return steps * BATCH_SIZE / (time.perf_counter() - start)


@contextlib.contextmanager
def running_session() -> Iterator[Any]:
    """A session with initialized variables and tables, and with running queues."""
    with tf1.Session() as session:
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        session.run(tf1.tables_initializer())
        coordinator = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coordinator)
        yield session
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=30, ignore_live_threads=True)


if __name__ == "__main__":
    main()
