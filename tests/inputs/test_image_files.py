"""CIFAR-10, MNIST and folders of images: what is read, and what is rejected."""

import gzip
import os

import numpy as np
import pytest
import tensorflow as tf
from absl import logging

from model_deploy import inputs
from model_deploy.inputs.datasets import cifar10, mnist
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance
from tests.inputs import files, sessions

pytestmark = pytest.mark.one_mode

SHARED_CIFAR = os.environ.get("CIFAR10_DIR", "")


def test_cifar_binary_is_read_whole(tmp_path):
    """The official test file gives its 10,000 images, rows of pixels of three colours."""
    labels = [number % 10 for number in range(10_000)]
    content, images = files.cifar_records(labels)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    (folder / "test_batch.bin").write_bytes(content)
    dataset = inputs.get_dataset("cifar10", "test", tmp_path)
    assert (dataset.num_examples, dataset.image_shape) == (10_000, (32, 32, 3))
    np.testing.assert_array_equal(dataset.source.arrays[0], images)
    assert dataset.source.arrays[1].tolist() == labels


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "record 2 .*is truncated: .* got 9218 bytes"),
        (lambda data: data[:3073], "record 1 .*is truncated"),
        (lambda _: b"", "record 0 .*is truncated"),
        (lambda data: data + b"x", "must have 3 records, got more"),
        (
            lambda data: data[:3073] + b"\x0a" + data[3074:],
            "record 1 .*label must be from 0 to 9, got 10",
        ),
    ],
)
def test_cifar_binary_rejects(change, message, tmp_path):
    """A CIFAR-10 file with a wrong size or label is an error that names file and record."""
    path = tmp_path / "x.bin"
    path.write_bytes(change(files.cifar_records([1, 2, 3])[0]))
    with pytest.raises(ValueError, match=f"x.bin: {message}"):
        cifar10.read_binary(str(path), 3, Tolerance())


def test_cifar_skips_tolerated_records_and_needs_all_files(tmp_path):
    """Within the tolerance, records with a wrong label are left out. If one of the five training
    files is missing, the error names it.
    """
    path = tmp_path / "x.bin"
    content, images = files.cifar_records([1, 77, 3])
    path.write_bytes(content)
    read, labels = cifar10.read_binary(str(path), 3, Tolerance(1))
    assert labels.tolist() == [1, 3]
    np.testing.assert_array_equal(read, images[[0, 2]])
    (tmp_path / "data_batch_2.bin").touch()
    with pytest.raises(ValueError, match=r"must be readable, got .*data_batch_1\.bin"):
        inputs.get_dataset("cifar10", "train", tmp_path)


@pytest.mark.skipif(not SHARED_CIFAR, reason="CIFAR10_DIR names no folder with CIFAR-10")
@pytest.mark.slow
def test_all_of_cifar_is_read_from_records():
    """All of CIFAR-10 has 50,000 and 10,000 images, as many of each class."""
    for split, count in (("train", 5000), ("test", 1000)):
        dataset = inputs.get_dataset("cifar10", split, SHARED_CIFAR)
        assert np.bincount(dataset.source.arrays[1]).tolist() == [count] * 10


@pytest.mark.parametrize(("name", "compress"), [("mnist", True), ("fashion_mnist", False)])
def test_mnist_is_read(name, compress, tmp_path):
    """Both MNISTs are read from the official files, compressed or not."""
    images, labels = files.write_mnist(tmp_path, compress=compress)
    for split in ("train", "test"):
        dataset = inputs.get_dataset(name, split, tmp_path)
        assert (dataset.num_examples, dataset.num_classes) == (12, 10)
        np.testing.assert_array_equal(dataset.source.arrays[0][..., 0], images)
        np.testing.assert_array_equal(dataset.source.arrays[1], labels)


GOOD_IDX = files.idx(files.noise([3, 28, 28]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD_IDX[:7], "record 0 .*header is truncated: got 7 bytes"),
        (GOOD_IDX[:-1], "record 2 .*is truncated"),
        (GOOD_IDX + b"x", "must have 3 records, got more"),
        (b"\0" + GOOD_IDX[:-1][2:] + b"\0\0", "must have magic number 2051"),
        (files.idx(files.noise([3, 28, 27])), r"dimensions \[28, 28\], got .*\[28, 27\]"),
        (GOOD_IDX[:4] + b"\xff" * 4 + GOOD_IDX[8:], "of at most 10000000 .*4294967295"),
    ],
    ids=["header", "truncated", "long", "magic", "size", "count"],
)
def test_idx_rejects(content, message, tmp_path):
    """An IDX file that is truncated or of another kind is an error that names it."""
    for name, stored in (("images", content), ("images.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(stored)
        with pytest.raises(ValueError, match=f"{name}: .*{message}"):
            mnist.read_idx(str(tmp_path / name), (28, 28))


def test_idx_rejects_broken_compression(tmp_path):
    """A compressed file that cannot be expanded is an error that names it."""
    path, data = tmp_path / "images.gz", gzip.compress(GOOD_IDX)
    for broken in (data[:-10], b"no gzip", data[:200] + b"\xff" * 20 + data[220:]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"images.gz: must be a readable IDX file, got"):
            mnist.read_idx(str(path), (28, 28))


def test_mnist_rejects_labels(tmp_path):
    """A label above 9 is an error that names its record, unless it is tolerated. Each image needs a
    label: other numbers of them and missing files are errors.
    """
    files.write_mnist(tmp_path)
    path = tmp_path / "train-labels-idx1-ubyte"
    path.write_bytes(files.idx(np.array([1, 2, 11] + [0] * 9, np.uint8)))
    with pytest.raises(CorruptRecordError, match=r"idx1-ubyte: record 2 .* from 0 to 9, got 11"):
        inputs.get_dataset("mnist", "train", tmp_path)
    assert inputs.get_dataset("mnist", "train", tmp_path, skip_corrupt_records=1).num_examples == 11
    path.write_bytes(files.idx(np.zeros([3], np.uint8)))
    with pytest.raises(ValueError, match=r"must have 12 labels, .*, got 3"):
        inputs.get_dataset("mnist", "train", tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match="must have images and labels of split 'train', got only"):
        inputs.get_dataset("mnist", "train", tmp_path)


def test_folder_is_split_by_name(tmp_path):
    """Each image is in one split, and stays there when others are added. The folder of the official
    archive of flowers is such a one, too.
    """
    files.write_folder(tmp_path / "flower_photos", count=20)
    flowers = [inputs.get_dataset("flowers", split, tmp_path) for split in ("train", "validation")]
    assert sum(each.num_examples for each in flowers) == 40
    assert flowers[0].class_names == ("cat", "dog")
    tmp_path = tmp_path / "flower_photos"

    def paths():
        splits = [inputs.get_dataset("folder", split, tmp_path) for split in ("train", "test")]
        return [
            {each.source.corrupt(number, "").path for number in range(each.num_examples)}
            for each in splits
        ]

    train, test = paths()
    assert not train & test
    assert len(train | test) == 40
    assert 2 <= len(test) <= 16
    (tmp_path / "cat" / "another.png").write_bytes(b"")
    (tmp_path / "bird").mkdir()
    new_train, new_test = paths()
    assert train <= new_train
    assert test <= new_test


@pytest.mark.slow
def test_folder_is_trained_on(tmp_path):
    """Images of several sizes and both formats become batches with the labels of their folders; a
    file that does not decode is named by the error of the step.
    """
    files.write_folder(tmp_path, count=6)
    (tmp_path / "dog" / "photo.JPG").write_bytes(files.encode(files.noise([30, 40, 3]), "jpeg"))
    (tmp_path / "dog" / "grey.png").write_bytes(files.encode(files.noise([20, 20, 1])))
    dataset = inputs.get_dataset("folder", "train", tmp_path, test_percent=0)
    assert (dataset.num_examples, dataset.class_names) == (14, ("cat", "dog"))
    for family in ("inception", "cifarnet"):
        options = {"batch_size": 14, "image_size": 16, "preprocessing": family}
        ((batch,),) = sessions.train_values(dataset, num_epochs=1, **options)
        assert batch["image"].shape == (14, 16, 16, 3)
        assert sorted(batch["label"].tolist()) == [0] * 6 + [1] * 8
    (tmp_path / "cat" / "broken.png").write_bytes(b"nothing")
    dataset = inputs.get_dataset("folder", "train", tmp_path, test_percent=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"broken.png: record 0 .* decode"):
        sessions.eval_values(dataset, image_size=8)


def test_folder_reports_files_that_it_leaves_out(tmp_path, monkeypatch):
    """Files with other endings are counted in a warning; hidden files are not. One that cannot be
    read any more is named by the error.
    """
    lines = []
    monkeypatch.setattr(logging, "warning", lambda text, *values: lines.append(text % values))
    files.write_folder(tmp_path, classes=("cat",), count=2)
    (tmp_path / "cat" / "notes.txt").touch()
    (tmp_path / "cat" / ".hidden").touch()
    dataset = inputs.get_dataset("folder", "train", tmp_path, test_percent=0)
    assert dataset.num_examples == 2
    assert [line.split(",")[-1] for line in lines] == [" such as notes.txt"]
    (tmp_path / "cat" / "0.png").unlink()
    with pytest.raises(CorruptRecordError, match=r"0.png: record 0 .*cannot be read: .*No such"):
        dataset.source.read(0)


@pytest.mark.parametrize(
    ("classes", "options", "message"),
    [
        ([], {}, "must have one sub-folder per class, got .* none"),
        (["cat"], {}, "must have JPEG or PNG files for split 'train', got"),
        (["cat"], {"test_percent": 101}, "from 0 to 100, got 101"),
    ],
)
def test_folder_rejects(classes, options, message, tmp_path):
    """Folders without classes or images are errors."""
    for each in classes:
        (tmp_path / each).mkdir()
    with pytest.raises(ValueError, match=message):
        inputs.get_dataset("folder", "train", tmp_path, **options)
