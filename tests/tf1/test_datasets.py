"""`datasets` of TF-Slim: TFRecords through `slim.dataset_data_provider` and its queues."""

import contextlib
import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import inputs, slim
from model_deploy.tf1.datasets import dataset_factory, dataset_utils, imagenet
from tests.inputs import files
from tests.inputs.test_download import serve

# `test_programs.py` has a program that reads by queues in the other mode.
pytestmark = pytest.mark.one_mode

_SHAPES = {
    "cifar10": [32, 32, 3],
    "flowers": [9, 7, 3],
    "imagenet": [9, 7, 3],
    "mnist": [28, 28, 1],
}
_FILES = {
    "cifar10": ["cifar10_train.tfrecord"],
    "flowers": ["flowers_train_00000-of-00002.tfrecord", "flowers_train_00001-of-00002.tfrecord"],
    "imagenet": ["train-00000-of-00002", "train-00001-of-00002"],
    "mnist": ["mnist_train.tfrecord"],
}


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No test asks the network for the names of imagenet's classes."""
    monkeypatch.setattr(imagenet, "LOAD_READABLE_NAMES", False)


def _write(folder, names, shape, count=6, write=files.write_records):
    """Records of noise with labels 0, 1, ..., in as many files as names; returns both."""
    images = np.stack([files.noise(shape, seed) for seed in range(count)])
    records = [
        dataset_utils.image_to_tfexample(
            files.encode(image), b"png", *shape[:2], label
        ).SerializeToString()
        for label, image in enumerate(images)
    ]
    for number, name in enumerate(names):
        write(folder / name, records[number :: len(names)])
    return images, np.arange(count)


def read_all(dataset, items=("image", "label"), **options):
    """All examples of one epoch, in the order of the queues."""
    found = []
    with tf.Graph().as_default(), tf.Session() as session:
        provider = slim.dataset_data_provider.DatasetDataProvider(
            dataset, num_epochs=1, shuffle=False, **options
        )
        tensors = provider.get(list(items))
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                found.append(session.run(tensors))
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=30)
    return found


def _assert_same(found, images, labels):
    """Each image was read once, with its label."""
    found = sorted(found, key=lambda pair: int(pair[1]))
    assert [int(label) for _, label in found] == labels.tolist()
    for (image, _), expected in zip(found, images, strict=True):
        np.testing.assert_array_equal(image, expected)


@pytest.mark.parametrize("name", _FILES)
def test_provider_reads_pixels_and_labels(name, tmp_path):
    """What was written comes out of the queues, all of it, once."""
    images, labels = _write(tmp_path, _FILES[name], _SHAPES[name])
    dataset = dataset_factory.get_dataset(name, "train", str(tmp_path))
    _assert_same(read_all(dataset), images, labels)


@pytest.mark.parametrize(
    ("name", "split", "num_samples", "num_classes"),
    [
        ("cifar10", "train", 50_000, 10),
        ("cifar10", "test", 10_000, 10),
        ("flowers", "train", 3320, 5),
        ("flowers", "validation", 350, 5),
        ("imagenet", "train", 1_281_167, 1001),
        ("imagenet", "validation", 50_000, 1001),
        ("mnist", "train", 60_000, 10),
        ("mnist", "test", 10_000, 10),
    ],
)
def test_facts(name, split, num_samples, num_classes, tmp_path):
    """Sizes are those of the official datasets, and each item is described."""
    dataset = dataset_factory.get_dataset(name, split, str(tmp_path))
    assert isinstance(dataset, slim.dataset.Dataset)
    assert (dataset.num_samples, dataset.num_classes) == (num_samples, num_classes)
    assert set(dataset.items_to_descriptions) == set(dataset.decoder.list_items())
    assert dataset.labels_to_names is None
    assert dataset.reader is tf.TFRecordReader


def test_labels_have_names_where_a_file_says_them(tmp_path):
    """`labels_to_names` is what `labels.txt` says."""
    names = {0: "daisy", 1: "dandelion: yellow"}
    dataset_utils.write_label_file(names, str(tmp_path))
    assert (tmp_path / "labels.txt").read_text() == "0:daisy\n1:dandelion: yellow\n"
    assert dataset_factory.get_dataset("flowers", "train", str(tmp_path)).labels_to_names == names


def test_file_pattern_and_reader_of_ones_own(tmp_path):
    """A program may have other names for its files, with the split where `%s` is, if it is
    anywhere, and a reader of its own: compressed ones.
    """
    options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)

    def write(path, records):
        with tf.python_io.TFRecordWriter(str(path), options) as writer:
            for record in records:
                writer.write(record)

    images, labels = _write(tmp_path, ["of_train.gz"], _SHAPES["flowers"], write=write)
    reader = functools.partial(tf.TFRecordReader, options=options)
    for pattern in ("of_%s.gz", "of*"):
        dataset = dataset_factory.get_dataset("flowers", "train", str(tmp_path), pattern, reader)
        _assert_same(read_all(dataset), images, labels)


@pytest.mark.parametrize("name", ["cifar10", "imagenet", "mnist"])
def test_files_that_this_project_converts_are_found(name, tmp_path):
    """What `model_deploy.inputs.convert` writes is read where Slim's own files are not."""
    shape = _SHAPES[name]
    images = np.stack([files.noise(shape, seed) for seed in range(6)])
    whole = inputs.Dataset(
        name=name,
        split="train",
        num_examples=6,
        num_classes=6,
        class_names=tuple("abcdef"),
        image_shape=tuple(shape),
        splits=("train",),
        source=inputs.ArraySource(lambda: (images, np.arange(6))),
    )
    inputs.convert_dataset(whole, tmp_path, num_shards=2, progress=False)
    dataset = dataset_factory.get_dataset(name, "train", str(tmp_path))
    _assert_same(read_all(dataset, num_readers=2), images, np.arange(6))


def test_images_of_mnist_may_be_raw(tmp_path):
    """A record that does not say how its image is encoded has its bytes."""
    image = files.noise([28, 28, 1])
    record = files.example(image.tobytes(), 7)
    files.write_records(tmp_path / "mnist_test.tfrecord", [record])
    [[found, label]] = read_all(dataset_factory.get_dataset("mnist", "test", str(tmp_path)))
    np.testing.assert_array_equal(found, image)
    assert label == 7


def test_imagenet_has_boxes_and_words(tmp_path):
    """The items of a record of ILSVRC: boxes are rows of top, left, bottom, right."""
    sides = {"ymin": [0.125, 0.25], "xmin": [0.0, 0.5], "ymax": [0.5, 0.75], "xmax": [1.0, 0.75]}
    image = files.noise([9, 7, 3])
    example = dataset_utils.image_to_tfexample(files.encode(image, "jpeg"), b"JPEG", 9, 7, 3)
    features = example.features.feature
    features["image/class/text"].CopyFrom(dataset_utils.bytes_feature(b"tench"))
    features["image/object/class/label"].CopyFrom(dataset_utils.int64_feature([3, 3]))
    for side, values in sides.items():
        features[f"image/object/bbox/{side}"].CopyFrom(dataset_utils.float_feature(values))
    files.write_records(tmp_path / "validation-00000-of-00001", [example.SerializeToString()])
    dataset = dataset_factory.get_dataset("imagenet", "validation", str(tmp_path))
    items = ["label", "label_text", "object/bbox", "object/label", "image"]
    [[label, text, boxes, of_boxes, found]] = read_all(dataset, items)
    assert (label, text, of_boxes.tolist()) == (3, b"tench", [3, 3])
    order = ("ymin", "xmin", "ymax", "xmax")
    np.testing.assert_array_equal(boxes, np.transpose([sides[side] for side in order]))
    assert found.shape == (9, 7, 3)


def _imagenet_names(count=1000):
    """The two files that name the classes."""
    synsets = [f"n{number:08d}" for number in range(count)]
    words = [f"{synset}\tclass {number}, thing" for number, synset in enumerate(synsets)]
    return {
        "imagenet_lsvrc_2015_synsets.txt": "\n".join(synsets).encode(),
        "imagenet_metadata.txt": "\n".join([*words[::-1], "n99999999\tother"]).encode(),
    }


def test_names_of_imagenet_are_downloaded_once(tmp_path, monkeypatch):
    """They are written beside the data; label 0 is the background."""
    monkeypatch.setattr(imagenet, "LOAD_READABLE_NAMES", True)
    with serve(_imagenet_names()) as (url, requests):
        monkeypatch.setattr(imagenet, "BASE_URL", url)
        first, again = (imagenet.get_split("train", str(tmp_path)) for _ in range(2))
    assert len(requests) == 2
    assert len(first.labels_to_names) == 1001
    assert first.labels_to_names[0] == "background"
    assert first.labels_to_names[1000] == "class 999, thing"
    assert again.labels_to_names == first.labels_to_names


@pytest.mark.parametrize("contents", [{}, _imagenet_names(5)], ids=["missing", "too_few"])
def test_imagenet_is_read_without_names(contents, tmp_path, monkeypatch):
    """Where names cannot be had, training goes on without them, and no file is left."""
    monkeypatch.setattr(imagenet, "LOAD_READABLE_NAMES", True)
    with serve(contents) as (url, _):
        monkeypatch.setattr(imagenet, "BASE_URL", url)
        assert imagenet.get_split("train", str(tmp_path)).labels_to_names is None
        with pytest.raises(ValueError, match=r"download of .* must succeed|must name 1000 classes"):
            imagenet.create_readable_names_for_imagenet_labels()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("cifar100", "train", "one of cifar10, .*, got 'cifar100'"),
        ("mnist", "validation", "one of train, test, got 'validation'"),
    ],
)
def test_get_dataset_rejects(name, split, message, tmp_path):
    """An unknown name or split is an error that lists the known ones."""
    with pytest.raises(ValueError, match=message):
        dataset_factory.get_dataset(name, split, str(tmp_path))
