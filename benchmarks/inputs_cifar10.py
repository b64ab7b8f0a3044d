"""Images per second of input pipelines for CIFAR-10, as multiples of TF-Slim's.

    python -m benchmarks.inputs_cifar10 --data_dir=<CIFAR-10 as TFRecords> [--rounds=5]

All pipelines make batches of 128 with the full cifarnet augmentation.  Without a folder only
those that read digits from memory are measured.
"""

import contextlib
import functools
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import images as images_lib
from benchmarks import torch_peer
from benchmarks.frame import Absent, Benchmark, Measure, Settings, run_command
from benchmarks.sizes import BATCH_SIZE
from model_deploy import inputs, slim

tf1 = tf.compat.v1
UNIT = "images/s"
SLIM = "TF-Slim queue runners, TFRecords"
USUAL, OURS, TORCH = "tf.data, image by image", "this project, in memory", "PyTorch, in memory"
# Those that read files.
PIPELINES = (
    SLIM,
    "binary files",
    "TFRecords",
    "TFRecords, decoded again each epoch",
    "the same, images of unknown size",
)


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """The pipelines, against TF-Slim's."""
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    secs = 0.2 if settings.quick else 3.0

    def start(stack: contextlib.ExitStack) -> Mapping[str, Measure | Absent]:
        data_dir = settings.data_dir
        builders = {
            USUAL: lambda: usual_batches(data_dir),
            OURS: lambda: our_batches(images_lib.get_dataset(data_dir)),
        }
        absent: dict[str, Absent] = {}
        if data_dir is None:
            absent = dict.fromkeys(PIPELINES, Absent("needs --data_dir, CIFAR-10 as TFRecords"))
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            builders |= pipelines_to_compare(data_dir, folder)
        work = {"batch_size": BATCH_SIZE, "secs": secs, "data_dir": data_dir}
        return {
            **{name: functools.partial(_measure, each, secs) for name, each in builders.items()},
            TORCH: torch_peer.start_input(stack, **work),
            **absent,
        }

    yield Benchmark(
        title="Input pipelines",
        does=(
            "Batches of 128 images of "
            f"{'CIFAR-10' if settings.data_dir else 'digits'}, augmented as the original cifarnet "
            "does, without training."
        ),
        quantities=(UNIT,),
        reference=SLIM if settings.data_dir else USUAL,
        start=start,
    )


def _measure(build: Callable[[], Any], secs: float) -> dict[str, float]:
    return {UNIT: images_per_sec(build, secs)}


def pipelines_to_compare(data_dir: str, folder: str) -> dict[str, Callable[[], Any]]:
    """Name -> function that builds a pipeline, in the order of `PIPELINES`."""
    records = inputs.get_dataset("cifar10", "train", data_dir)
    write_binary(records, pathlib.Path(folder))
    binary = inputs.get_dataset("cifar10", "train", folder)
    sized, of_unknown_size = encoded(data_dir, image_size=32), encoded(data_dir)
    builders: tuple[Callable[[], Any], ...] = (
        lambda: slim_batches(data_dir, records.num_examples),
        lambda: our_batches(binary),
        lambda: our_batches(records),
        lambda: our_batches(sized),
        lambda: our_batches(of_unknown_size),
    )
    return dict(zip(PIPELINES, builders, strict=True))


def encoded(data_dir: str, **options: Any) -> inputs.Dataset:
    """The training images as their files have them, decoded in each epoch."""
    return inputs.get_dataset(
        "tfrecord", "train", data_dir, file_prefix="cifar10", keep_in_memory=False, **options
    )


def usual_batches(data_dir: str | None) -> Any:
    """What TensorFlow's guides advise."""
    iterator = tf1.data.make_initializable_iterator(images_lib.usual_input(data_dir, BATCH_SIZE))
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


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
        [images_lib.augment(image), label],
        batch_size=BATCH_SIZE,
        num_threads=4,
        capacity=5 * BATCH_SIZE,
    )
    queue = slim.prefetch_queue.prefetch_queue([images, labels], capacity=2)
    return queue.dequeue()


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
    run_command(benchmarks, __doc__ or "")
