"""Datasets on a file system of TensorFlow's: `ram://`, which is in memory."""

import uuid

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from tests.inputs import files, sessions

pytestmark = pytest.mark.one_mode


@pytest.fixture
def remote():
    """A new folder of TensorFlow's file system in memory."""
    folder = f"ram://{uuid.uuid4().hex}"
    tf.io.gfile.makedirs(folder)
    yield folder
    tf.io.gfile.rmtree(folder)


def copy(folder, remote):
    """Copies a folder with all that is in it."""
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        target = f"{remote}/{path.relative_to(folder)}"
        tf.io.gfile.makedirs(target.rpartition("/")[0])
        with tf.io.gfile.GFile(target, "wb") as file:
            file.write(path.read_bytes())


@pytest.mark.slow
def test_records_are_read(tmp_path, remote):
    """Training by blocks, and evaluation one by one, see what they see of local files."""
    files.write_examples(tmp_path, [5, 8])
    copy(tmp_path, remote)
    here, there = (inputs.get_dataset("tfrecord", "train", each) for each in (tmp_path, remote))
    options = {"batch_size": 4, "num_epochs": 2, "image_size": 8, "shuffle_block": 3}
    local = sessions.train_values(here, **options)
    sessions.assert_same(local, sessions.train_values(there, **options))
    labels = [each["label"].tolist() for each in sessions.eval_values(there, image_size=8)]
    assert labels == [[number % 3 for number in range(13)]]


@pytest.mark.slow
def test_folders_are_read(tmp_path, remote):
    """A folder with sub-folders of images is the same dataset."""
    files.write_folder(tmp_path, count=6)
    copy(tmp_path, remote)
    here, there = (
        inputs.get_dataset("folder", "train", each, test_percent=0) for each in (tmp_path, remote)
    )
    assert there.class_names == ("cat", "dog")
    options = {"batch_size": 5, "num_epochs": 1, "image_size": 8, "preprocessing": "inception"}
    sessions.assert_same(
        sessions.train_values(here, **options), sessions.train_values(there, **options)
    )


def test_mnist_and_cifar_are_read(tmp_path, remote):
    """The official files, compressed or not."""
    for compress in (False, True):
        images, labels = files.write_mnist(tmp_path / str(compress), compress=compress)
        copy(tmp_path, remote)
        dataset = inputs.get_dataset("mnist", "train", f"{remote}/{compress}")
        np.testing.assert_array_equal(dataset.source.arrays[0][..., 0], images)
        np.testing.assert_array_equal(dataset.source.arrays[1], labels)
    (tmp_path / "test_batch.bin").write_bytes(files.cifar_records([3] * 10_000)[0])
    copy(tmp_path, remote)
    dataset = inputs.get_dataset("cifar10", "test", remote)
    assert dataset.source.arrays[1].tolist() == [3] * 10_000


def test_index_is_kept_beside_the_records(remote):
    """A file on another machine is gone through once."""
    with tf.io.TFRecordWriter(f"{remote}/a_train.tfrecord") as writer:
        for number in range(20):
            writer.write(files.example(files.noise([5000], number).tobytes(), 0))
    inputs.get_dataset("tfrecord", "train", remote, num_classes=1)
    assert tf.io.gfile.exists(f"{remote}/.a_train.tfrecord.index")
    assert inputs.get_dataset("tfrecord", "train", remote, num_classes=1).num_examples == 20


def test_corrupt_records_are_named(tmp_path, remote):
    """The error names the file by its whole path."""
    files.write_examples(tmp_path, [4])
    (path,) = tmp_path.glob("*.tfrecord")
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    copy(tmp_path, remote)
    dataset = inputs.get_dataset("tfrecord", "train", remote)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=rf"{remote}/{path.name}: record 0 .*checksum"
    ):
        sessions.eval_values(dataset, image_size=8)


def test_missing_folders_are_errors(remote):
    """What is not there is an error that names it."""
    with pytest.raises(ValueError, match=r"must be a folder, got 'ram://[0-9a-f]+/nothing'"):
        inputs.get_dataset("tfrecord", "train", f"{remote}/nothing")
    with tf.io.TFRecordWriter(f"{remote}/a_train.tfrecord") as writer:
        writer.write(b"abc")
    with pytest.raises(ValueError, match=r"labels.txt' must name the classes"):
        inputs.get_dataset("tfrecord", "train", remote)
