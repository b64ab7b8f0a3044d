"""Good examples meet no Python while they are read, however they are stored."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.datasets import folder, slim_records
from model_deploy.inputs.reading import reader
from tests.inputs import files, sessions

pytestmark = pytest.mark.one_mode

READ_FILE = folder.FileSource.read  # which a conversion needs


@pytest.fixture
def no_python(monkeypatch):
    """Reading an example by Python is an error."""

    def fail(*_):
        raise AssertionError("an example was read by Python")

    monkeypatch.setattr(reader.Reader, "read", fail)
    monkeypatch.setattr(slim_records.RecordSource, "read", fail)
    monkeypatch.setattr(folder.FileSource, "read", fail)


def made(name, path):
    """A dataset of 20 PNGs and JPEGs in files."""
    if name == "folder":
        files.write_folder(path, count=9)
        for number in range(2):
            content = files.encode(files.noise([20, 30, 3], number), "jpeg")
            (path / "cat" / f"photo_{number}.jpg").write_bytes(content)
        return inputs.get_dataset("folder", "train", path, test_percent=0)
    if name == "raw":
        made("folder", path / "images")
        dataset = inputs.get_dataset("folder", "train", path / "images", test_percent=0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(folder.FileSource, "read", READ_FILE)
            inputs.convert_dataset(
                dataset, path / "raw", num_shards=2, raw=True, image_size=12, progress=False
            )
        return inputs.get_dataset("tfrecord", "train", path / "raw")
    files.write_examples(path, [11, 9], name=name)
    small = {"image_size": 8, "keep_in_memory": False} if name == "tfrecord" else {}
    return inputs.get_dataset(name, "train", path, **small)


@pytest.mark.slow
@pytest.mark.usefixtures("no_python")
@pytest.mark.parametrize(
    ("name", "preprocessing"),
    [
        ("tfrecord", "cifarnet"),  # small images, whole batches of which are augmented
        ("flowers", "vgg"),
        ("folder", "cifarnet"),
        ("raw", "inception"),
    ],
)
def test_examples_meet_no_python(name, preprocessing, tmp_path):
    """Training and evaluation read all examples by TensorFlow's ops."""
    dataset = made(name, tmp_path)
    options = {"image_size": 8, "preprocessing": preprocessing, "batch_size": 4}
    block = 2 if name in ("tfrecord", "flowers") else None
    steps = sessions.train_indices(dataset, num_epochs=1, shuffle_block=block, **options)
    assert sorted(itertools.chain(*steps)) == list(range(20))
    batches = sessions.eval_values(dataset, **options)
    assert np.concatenate([each["index"] for each in batches]).tolist() == list(range(20))


@pytest.mark.slow
@pytest.mark.usefixtures("no_python")
@pytest.mark.parametrize(("name", "preprocessing"), [("tfrecord", "cifarnet"), ("folder", "vgg")])
def test_augmentation_meets_no_python(name, preprocessing, tmp_path):
    """Neither does RandAugment, nor erasing, nor the partners of mixup and cutmix."""
    everything = {"randaugment_layers": 1, "random_erasing": 0.5, "mixup": 0.2, "cutmix": 1.0}
    options = {"image_size": 8, "batch_size": 4, "num_shards": 2, "preprocessing": preprocessing}
    dataset, called = made(name, tmp_path), set()

    def build():
        augmented = inputs.Augmentation(**everything)
        batches = inputs.train_batches(dataset, num_epochs=1, augmentation=augmented, **options)
        functions = tf.compat.v1.get_default_graph().as_graph_def().library.function
        called.update(node.op for function in functions for node in function.node_def)
        return next(batches)

    assert len(sessions.collect(build)) == 20 // 8
    assert "ImageProjectiveTransformV3" in called


@pytest.mark.slow
def test_a_vanished_file_ends_the_run(tmp_path):
    """A file that is gone is an error that names it, and no endless search."""
    files.write_examples(tmp_path, [20])
    dataset = inputs.get_dataset("tfrecord", "train", tmp_path)
    (path,) = tmp_path.glob("*.tfrecord")
    path.unlink()
    for block in (None, 4):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"{path.name}: record .*No such"):
            sessions.train_indices(dataset, batch_size=4, image_size=8, shuffle_block=block)


@pytest.mark.slow
def test_errors_of_a_users_preprocessing_are_raised(tmp_path):
    """What fails in a user's function is its own error, not one of the data."""
    files.write_examples(tmp_path, [8])
    dataset = inputs.get_dataset("tfrecord", "train", tmp_path)

    def fails(image, height, width, seed):
        del seed
        with tf.control_dependencies([tf.debugging.assert_equal(1, tf.size(image), "my mistake")]):
            return tf.zeros([height, width, 3])

    family = inputs.Preprocessing("fails", fails, fails)
    with pytest.raises(tf.errors.InvalidArgumentError, match="my mistake"):
        sessions.train_indices(dataset, batch_size=4, image_size=8, preprocessing=family)


def test_autograph_goes_through_a_users_preprocessing(tmp_path):
    """A Python `if` on a tensor works in a family that a user has registered."""
    files.write_examples(tmp_path, [8])
    dataset = inputs.get_dataset("tfrecord", "train", tmp_path)

    def darker(image, height, width):
        image = tf.image.resize(image, [height, width])
        if tf.reduce_mean(image) > 0:
            image = -image
        return image

    family = inputs.Preprocessing("darker", darker, darker)
    (batch,) = sessions.eval_values(dataset, image_size=8, preprocessing=family)
    assert batch["image"].mean() < 0
