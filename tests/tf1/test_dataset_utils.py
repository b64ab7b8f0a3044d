"""`dataset_utils` of TF-Slim and its converters: records, labels, downloads from loopback."""

import contextlib
import io
import zipfile

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.inputs.datasets import cifar10
from model_deploy.inputs.files import downloading
from model_deploy.tf1.datasets import (
    dataset_factory,
    dataset_utils,
    download_and_convert_cifar10,
    download_and_convert_flowers,
    download_and_convert_mnist,
)
from tests.inputs import files
from tests.inputs.test_download import serve, sha256, tar
from tests.tf1.test_datasets import _assert_same, read_all

pytestmark = pytest.mark.one_mode


def _zip(members):
    """A zip archive of names and contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


_ARCHIVES = {
    "things.tar.gz": (
        dataset_utils.download_and_uncompress_tarball,
        lambda members: tar([(name, content, {}) for name, content in members.items()]),
    ),
    "things.zip": (dataset_utils.download_and_uncompress_zipfile, _zip),
}


@pytest.mark.parametrize(
    ("feature", "kind", "values"),
    [
        (dataset_utils.int64_feature(3), "int64_list", [3]),
        (dataset_utils.int64_feature([3, 4]), "int64_list", [3, 4]),
        (dataset_utils.float_feature(0.5), "float_list", [0.5]),
        (dataset_utils.float_feature([0.5, 2]), "float_list", [0.5, 2]),
        (dataset_utils.float_list_feature([0.5, 2]), "float_list", [0.5, 2]),
        (dataset_utils.bytes_feature(b"ab"), "bytes_list", [b"ab"]),
        (dataset_utils.bytes_list_feature([b"a", b"b"]), "bytes_list", [b"a", b"b"]),
    ],
)
def test_features(feature, kind, values):
    """A feature has the values that it was made of."""
    assert feature.WhichOneof("kind") == kind
    assert list(getattr(feature, kind).value) == values


def test_records_have_the_names_of_slim():
    """An image with its format, size and label."""
    example = dataset_utils.image_to_tfexample(b"bytes", b"png", 4, 5, 6)
    found = {
        name: list(getattr(feature, feature.WhichOneof("kind")).value)
        for name, feature in example.features.feature.items()
    }
    assert found == {
        "image/encoded": [b"bytes"],
        "image/format": [b"png"],
        "image/class/label": [6],
        "image/height": [4],
        "image/width": [5],
    }


def test_label_files(tmp_path):
    """What is written is read again, under any name."""
    folder = str(tmp_path)
    assert not dataset_utils.has_labels(folder, "names.txt")
    dataset_utils.write_label_file({0: "a", 5: "b:c"}, folder, "names.txt")
    assert dataset_utils.has_labels(folder, "names.txt")
    assert dataset_utils.read_label_file(folder, "names.txt") == {0: "a", 5: "b:c"}
    (tmp_path / "names.txt").write_text("0:a\nb\n")
    with pytest.raises(ValueError, match=r"names.txt: line 2 must be 'label:name', got 'b'"):
        dataset_utils.read_label_file(folder, "names.txt")


def test_sharded_records_are_closed_with_the_stack(tmp_path):
    """Each shard has its number in its name, and what was written to it."""
    with contextlib.ExitStack() as stack:
        writers = dataset_utils.open_sharded_output_tfrecords(stack, str(tmp_path / "mine"), 2)
        for number in range(5):
            writers[number % 2].write(str(number).encode())
    found = {
        path.name: [int(each) for each in tf.python_io.tf_record_iterator(str(path))]
        for path in tmp_path.iterdir()
    }
    assert found == {"mine-00000-of-00002": [0, 2, 4], "mine-00001-of-00002": [1, 3]}


@pytest.mark.parametrize("name", _ARCHIVES)
def test_archives_are_downloaded_once_and_extracted(name, tmp_path):
    """A second call finds everything there, also where files were added since."""
    download, pack = _ARCHIVES[name]
    with serve({name: pack({"x/y": b"new", "z": b"new"})}) as (url, requests):
        download(f"{url}/{name}", str(tmp_path))
        (tmp_path / "x" / "mine").touch()
        download(f"{url}/{name}", str(tmp_path))
    assert requests == [f"/files/{name}"]
    found = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*"))
    assert found == sorted([name, "x", "x/mine", "x/y", "z"])
    assert (tmp_path / "x" / "y").read_bytes() == b"new"


def test_archives_write_over_nothing(tmp_path):
    """If a file of the archive is there with another content, nothing at all is extracted."""
    name, (download, pack) = next(iter(_ARCHIVES.items()))
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "y").write_bytes(b"old")
    with (
        serve({name: pack({"a": b"new", "x/y": b"new"})}) as (url, _),
        pytest.raises(ValueError, match=r"x/y must not be there, or be as in"),
    ):
        download(f"{url}/{name}", str(tmp_path))
    assert (tmp_path / "x" / "y").read_bytes() == b"old"
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([name, "x"])


@contextlib.contextmanager
def _official(monkeypatch, name, contents, is_archive):
    """Serves files in place of the official ones of a dataset."""
    with serve(contents) as (url, requests):
        sums = {f"{url}/{each}": sha256(content) for each, content in contents.items()}
        entry = downloading.Download(sums, is_archive=is_archive)
        monkeypatch.setitem(downloading.DOWNLOADS, name, entry)
        yield requests


def test_mnist_becomes_records(tmp_path, monkeypatch):
    """The provider reads from the records what was in the official files; work is done once."""
    images, labels = files.write_mnist(tmp_path / "server", compress=True)
    contents = {path.name: path.read_bytes() for path in (tmp_path / "server").iterdir()}
    folder = tmp_path / "data"
    with _official(monkeypatch, "mnist", contents, is_archive=False) as requests:
        download_and_convert_mnist.run(str(folder))
        download_and_convert_mnist.run(str(folder))
    assert len(requests) == 4
    assert sorted(each.name for each in folder.iterdir()) == [
        "labels.txt",
        "mnist_test.tfrecord",
        "mnist_train.tfrecord",
    ]
    dataset = dataset_factory.get_dataset("mnist", "train", str(folder))
    assert dataset.labels_to_names[6] == "six"
    found = read_all(dataset)
    assert [int(label) for _, label in found] == labels.tolist()
    np.testing.assert_array_equal([image[..., 0] for image, _ in found], images)


def test_cifar10_becomes_records(tmp_path, monkeypatch):
    """The official binary version does; a file that is there is not written over."""
    monkeypatch.setattr(cifar10, "_RECORDS_PER_FILE", 3)
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    content, images = files.cifar_records([4, 1, 8])
    archive = tar([(f"cifar-10-batches-bin/{name}", content, {}) for name in names])
    (tmp_path / "cifar10_train.tfrecord").write_bytes(b"mine")
    contents = {"cifar-10-binary.tar.gz": archive}
    with _official(monkeypatch, "cifar10", contents, is_archive=True):
        download_and_convert_cifar10.run(str(tmp_path))
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "cifar10_test.tfrecord",
        "cifar10_train.tfrecord",
        "labels.txt",
    ]
    assert (tmp_path / "cifar10_train.tfrecord").read_bytes() == b"mine"
    dataset = dataset_factory.get_dataset("cifar10", "test", str(tmp_path))
    assert dataset.labels_to_names[9] == "truck"
    _assert_same(read_all(dataset), images[[1, 0, 2]], np.array([1, 4, 8]))


def test_flowers_become_records(tmp_path, monkeypatch):
    """Each photograph is in one of the two splits, which have five files each."""
    images = {
        f"flower_photos/{kind}/{number}.png": files.encode(files.noise([5, 6, 3], seed))
        for seed, (kind, number) in enumerate((k, n) for k in ("daisy", "roses") for n in range(8))
    }
    archive = tar([(name, content, {}) for name, content in images.items()])
    monkeypatch.setattr(download_and_convert_flowers, "NUM_VALIDATION", 6)
    with serve({"flower_photos.tgz": archive}) as (url, _):
        monkeypatch.setattr(download_and_convert_flowers, "DATA_URL", f"{url}/flower_photos.tgz")
        download_and_convert_flowers.run(str(tmp_path))
    names = sorted(each.name for each in tmp_path.iterdir())
    assert len(names) == 11
    assert names[0] == "flowers_train_00000-of-00005.tfrecord"
    assert names[9:] == ["flowers_validation_00004-of-00005.tfrecord", "labels.txt"]
    found = {}
    for split, count in (("train", 10), ("validation", 6)):
        dataset = dataset_factory.get_dataset("flowers", split, str(tmp_path))
        assert dataset.labels_to_names == {0: "daisy", 1: "roses"}
        read = read_all(dataset)
        assert len(read) == count
        found |= {image.tobytes(): int(label) for image, label in read}
    expected = {
        files.noise([5, 6, 3], seed).tobytes(): int("roses" in name)
        for seed, name in enumerate(images)
    }
    assert found == expected
