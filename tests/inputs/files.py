"""Makes small files of the kinds that datasets are made of."""

import functools
import gzip
import struct

import numpy as np
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.files import checksums


def noise(shape, seed=0):
    """A random image, uint8."""
    return np.random.RandomState(seed).randint(0, 256, shape, dtype=np.uint8)


def smooth(height, width, channels=3):
    """An image that changes slowly, which JPEG keeps well: waves of some hundred pixels."""
    rows, columns = np.mgrid[:height, :width]
    waves = [np.sin(rows / 60 + columns / (70 + 9 * colour)) for colour in range(channels)]
    return (np.stack(waves, axis=-1) * 100 + 128).astype(np.uint8)


@functools.cache
def _encoder(kind):
    with tf.Graph().as_default() as graph:
        image = tf.compat.v1.placeholder(tf.uint8)
        contents = getattr(tf.io, f"encode_{kind}")(image)
        return tf.compat.v1.Session(graph=graph).make_callable(contents, [image])


def encode(image, kind="png"):
    """An image as PNG or JPEG."""
    return _encoder(kind)(image)


def example(contents=None, label=None):
    """A serialized `tf.train.Example`, without what is None."""
    features = {}
    if contents is not None:
        features["image/encoded"] = tf.train.Feature(
            bytes_list=tf.train.BytesList(value=[contents])
        )
    if label is not None:
        features["image/class/label"] = tf.train.Feature(
            int64_list=tf.train.Int64List(value=[label])
        )
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def record_bytes(data):
    """A TFRecord: length, checksum, data, checksum."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        [
            length,
            struct.pack("<I", checksums.masked_crc32c(length)),
            data,
            struct.pack("<I", checksums.masked_crc32c(data)),
        ]
    )


def write_records(path, records):
    """A TFRecord file."""
    path.write_bytes(b"".join(map(record_bytes, records)))
    return path


def get(folder, split="train", **options):
    """The `tfrecord` dataset of a folder."""
    return inputs.get_dataset("tfrecord", split, folder, **options)


def write_examples(folder, shard_sizes, image_shape=(8, 8, 3), name="tiny", split="train"):
    """A dataset of 3 classes in as many shards as sizes; returns images and labels."""
    folder.mkdir(exist_ok=True)
    total = sum(shard_sizes)
    images = [noise(image_shape, seed) for seed in range(total)]
    labels = [number % 3 for number in range(total)]
    records = [example(encode(*each[:1]), each[1]) for each in zip(images, labels, strict=True)]
    begin = 0
    for shard, size in enumerate(shard_sizes):
        shards = len(shard_sizes)
        file_name = f"{name}_{split}_{shard:05d}-of-{shards:05d}.tfrecord"
        write_records(folder / file_name, records[begin : begin + size])
        begin += size
    (folder / "labels.txt").write_text("0:cat\n1:dog\n2:owl\n")
    return np.array(images), np.array(labels)


def idx(array):
    """An array of bytes as IDX."""
    magic = 0x0800 + array.ndim
    return struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()


def write_mnist(folder, count=12, compress=False):
    """Both splits of a small MNIST; returns the training images and labels."""
    folder.mkdir(exist_ok=True)
    images = noise([count, 28, 28])
    labels = (np.arange(count) % 10).astype(np.uint8)
    for prefix in ("train", "t10k"):
        for name, array in (("images-idx3", images), ("labels-idx1", labels)):
            path = folder / f"{prefix}-{name}-ubyte{'.gz' if compress else ''}"
            path.write_bytes(gzip.compress(idx(array)) if compress else idx(array))
    return images, labels


def cifar_records(labels):
    """CIFAR-10 binary records: returns their bytes and the images."""
    images = noise([len(labels), 32, 32, 3])
    planes = images.transpose([0, 3, 1, 2]).reshape([len(labels), -1])
    records = np.concatenate([np.array(labels, np.uint8)[:, np.newaxis], planes], axis=1)
    return records.tobytes(), images


def write_folder(folder, classes=("cat", "dog"), count=10, shape=(12, 10, 3)):
    """`count` PNG files in a sub-folder per class."""
    for label, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            image = noise(shape, seed=label * count + number)
            (folder / name / f"{number}.png").write_bytes(encode(image))
    return folder
