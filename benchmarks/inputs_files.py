"""Input pipelines that read files: images per second, and per second of the processors.

    python -m benchmarks.inputs_files [--data_dir=<CIFAR-10 as TFRecords>] [--rounds=5]

Photographs are made from the two that scikit-learn ships: other parts of them, 500 x 375, as JPEGs.
The plain pipeline reads the same records in the order of the file, which is what costs least.
"""

import contextlib
import functools
import os
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.frame import Absent, Benchmark, Goal, Measure, Settings, run_command
from benchmarks.inputs_cifar10 import encoded, running_session, slim_batches
from model_deploy import inputs
from model_deploy.inputs import preprocessing

tf1 = tf.compat.v1
A = tf.data.AUTOTUNE
RATE, PER_CPU = "images/s", "images per CPU second"
PLAIN, OURS, BLOCKS = "plain tf.data, in the file's order", "this project", "this project, blocks"
FOLDER, PYTHON, SLIM = "this project, folder", "a source in Python", "TF-Slim queue runners"
BLOCK = 32


class InPython:
    """A source with nothing but `read`, as users register them."""

    def __init__(self, source: Any) -> None:
        self.tolerance, self.read, self.corrupt = source.tolerance, source.read, source.corrupt


def benchmarks(settings: Settings) -> Iterable[Benchmark]:
    """Photographs with two kinds of preprocessing, and small images."""
    tf1.disable_eager_execution()
    tf1.logging.set_verbosity(tf1.logging.ERROR)
    for family in ("inception", "vgg"):
        yield Benchmark(
            title=f"Photographs from files, {family}",
            does=f"Batches of 32 JPEGs of 500 x 375 with the preprocessing of {family}, at 224.",
            quantities=(RATE, PER_CPU),
            reference=PLAIN,
            start=functools.partial(_photographs, settings, family),
            goals=(
                Goal(PER_CPU, OURS, PLAIN, 1 / 1.15),
                Goal(PER_CPU, BLOCKS, PLAIN, 1 / 1.05),
                Goal(PER_CPU, FOLDER, OURS, 1 / 1.15),
            ),
        )
    yield Benchmark(
        title="Small images from files",
        does="Batches of 128 images of CIFAR-10, PNGs in TFRecords, decoded in each epoch.",
        quantities=(RATE, PER_CPU),
        reference=PLAIN,
        start=functools.partial(_small_images, settings),
        goals=(
            Goal(PER_CPU, OURS, PLAIN, 1 / 1.2),
            Goal(PER_CPU, BLOCKS, PLAIN, 1 / 1.3),
            Goal(RATE, OURS, SLIM, 2),
        ),
    )


def _photographs(
    settings: Settings, family: str, stack: contextlib.ExitStack
) -> Mapping[str, Measure | Absent]:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    make_photographs(folder / "folder", settings.amount(1500, 64))
    images = inputs.get_dataset("folder", "train", folder / "folder", test_percent=0)
    inputs.convert_dataset(images, folder / "records", num_shards=2, progress=False)
    records = inputs.get_dataset("tfrecord", "train", folder / "records")
    options = {"batch_size": 32, "image_size": 224, "preprocessing": family}
    return contenders(
        stack,
        settings,
        32,
        {
            PLAIN: lambda: plain_batches(folder / "records", family, 224, 32),
            OURS: lambda: our_batches(records, **options),
            BLOCKS: lambda: our_batches(records, shuffle_block=BLOCK, **options),
            FOLDER: lambda: our_batches(images, **options),
            PYTHON: lambda: our_batches(_in_python(records), **options),
        },
    )


def _small_images(
    settings: Settings, stack: contextlib.ExitStack
) -> Mapping[str, Measure | Absent]:
    folder = settings.data_dir
    if folder is None:
        return dict.fromkeys((PLAIN, OURS), Absent("needs --data_dir, CIFAR-10 as TFRecords"))
    records = encoded(folder, image_size=32)
    options = {"batch_size": 128, "preprocessing": "cifarnet"}
    return contenders(
        stack,
        settings,
        128,
        {
            PLAIN: lambda: plain_batches(pathlib.Path(folder), "cifarnet", 32, 128),
            OURS: lambda: our_batches(records, **options),
            BLOCKS: lambda: our_batches(records, shuffle_block=BLOCK, **options),
            PYTHON: lambda: our_batches(_in_python(records), **options),
            SLIM: lambda: slim_batches(folder, records.num_examples),
        },
    )


def _in_python(dataset: inputs.Dataset) -> inputs.Dataset:
    return inputs.Dataset(**vars(dataset) | {"source": InPython(dataset.source)})


def our_batches(dataset: inputs.Dataset, num_clones: int = 1, **options: Any) -> Any:
    """The batches of all clones."""
    batches = inputs.train_batches(dataset, num_clones=num_clones, **options)
    return [next(batches) for _ in range(num_clones)]


def contenders(
    stack: contextlib.ExitStack,
    settings: Settings,
    batch_size: int,
    builders: Mapping[str, Callable[[], Any]],
) -> dict[str, Measure | Absent]:
    """Starts each pipeline and gives what measures it: images per second, and of the processors.

    Args:
      stack: ends their sessions.
      settings: of the benchmark.
      batch_size: images in each run.
      builders: functions that build the tensors of a batch.
    """
    secs = 0.2 if settings.quick else 3.0
    return {
        name: start_pipeline(stack, build, batch_size, secs) for name, build in builders.items()
    }


def start_pipeline(
    stack: contextlib.ExitStack, build: Callable[[], Any], batch_size: int, secs: float
) -> Measure:
    """Measures how fast the batches come that `build` makes in a graph of their own.

    What was made ready in advance is taken before the time begins, and made again after it has
    ended: a pipeline that fills its buffers would else take time from the next contender.
    """
    with tf.Graph().as_default():
        ops = [tensor.op for tensor in tf.nest.flatten(build())]
        session = stack.enter_context(running_session())
        run = session.make_callable(ops)

    def measure() -> dict[str, float]:
        begin = time.perf_counter()
        while time.perf_counter() - begin < secs / 3:
            run()
        images, start, before = 0, time.perf_counter(), sum(os.times()[:2])
        while time.perf_counter() - start < secs:
            run()
            images += batch_size
        took, used = time.perf_counter() - start, sum(os.times()[:2]) - before
        _wait_until_idle()
        return {RATE: images / took, PER_CPU: images / used}

    return measure


def _wait_until_idle(interval: float = 0.1) -> None:
    """Waits until this process takes less than a tenth of a processor."""
    used = float("inf")
    while used > interval / 10:
        before = time.process_time()
        time.sleep(interval)
        used = time.process_time() - before


def plain_batches(folder: pathlib.Path, family: str, size: int, batch_size: int) -> Any:
    """What one writes by hand: records in their order, each image by a parallel map."""
    steps = preprocessing.get_preprocessing(family)

    @tf.autograph.experimental.do_not_convert
    def read(position: Any, record: Any) -> tuple[Any, Any]:
        kinds = {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        }
        features = tf.io.parse_single_example(record, kinds)
        contents, seed = features["image/encoded"], tf.stack([tf.zeros_like(position), position])
        if steps.crop_encoded:
            image = steps.crop_encoded(contents, seed, 3)
            image.set_shape([None, None, 3])
            image = steps.train(image, size, size, seed, crop_image=False)
        else:
            image = tf.io.decode_image(contents, 3, expand_animations=False)
            if not steps.batched:
                image = steps.train(image, size, size, seed)
        return tf.ensure_shape(image, [size, size, 3]), features["image/class/label"]

    @tf.autograph.experimental.do_not_convert
    def finish(images: Any, labels: Any) -> tuple[Any, Any]:
        seeds = tf.reshape(tf.range(2 * batch_size, dtype=tf.int64), [-1, 2])
        return steps.train(images, size, size, seeds), labels

    paths = sorted(str(path) for path in folder.glob("*train*.tfrecord"))
    batches = tf.data.TFRecordDataset(paths).repeat().enumerate().map(read, A)
    batches = batches.batch(batch_size, drop_remainder=True)
    batches = (batches.map(finish, A) if steps.batched else batches).prefetch(A)
    iterator = tf1.data.make_initializable_iterator(batches)
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def make_photographs(folder: pathlib.Path, count: int, height: int = 375, width: int = 500) -> None:
    """Writes JPEGs into `<folder>/photographs`: random parts, scaled, of scikit-learn's two."""
    from sklearn.datasets import load_sample_images  # noqa: PLC0415 - takes a second

    (folder / "photographs").mkdir(parents=True)
    draws = np.random.RandomState(0)
    originals = load_sample_images().images
    with tf.Graph().as_default(), tf1.Session() as session:
        part = tf1.placeholder(tf.uint8, [None, None, 3])
        scaled = tf1.image.resize_bicubic(part[tf.newaxis], [height, width])[0]
        jpeg = tf.io.encode_jpeg(tf.cast(tf.clip_by_value(scaled, 0, 255), tf.uint8), quality=95)
        for number in range(count):
            image = originals[number % len(originals)]
            top, left = draws.randint(0, 200), draws.randint(0, 300)
            cut = image[top : top + 200, left : left + 266][:, :: draws.choice([-1, 1])]
            content = session.run(jpeg, {part: cut})
            (folder / "photographs" / f"{number:05d}.jpg").write_bytes(content)


if __name__ == "__main__":
    run_command(benchmarks, __doc__ or "")
