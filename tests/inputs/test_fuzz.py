"""Readers given bytes that nobody wrote on purpose: a clear error or an answer, never else."""

import contextlib
import functools
import gzip
import io
import tarfile

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from model_deploy import inputs
from model_deploy.inputs.datasets import cifar10, mnist
from model_deploy.inputs.files import archives, slim_files, tfrecords
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance
from model_deploy.inputs.reading import decoding
from tests.inputs import files

pytestmark = pytest.mark.one_mode

# The folder is the same for all examples of a test, and each writes its own file anew.
FUZZ = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def mutations(content):
    """A strategy for damaged versions of a file: cut off, changed, or with bytes between."""
    places = st.integers(0, max(0, len(content) - 1))

    def damaged(place, data, skipped):
        return content[:place] + data + content[place + skipped :]

    data = st.binary(min_size=1, max_size=20)
    return st.one_of(
        st.builds(damaged, places, st.just(b""), st.just(len(content))),
        st.builds(damaged, places, data, st.integers(0, 20)),
        st.binary(max_size=200),
    )


@functools.cache
def good_files():
    """Name -> content of a file of each kind."""
    image = files.noise([28, 28, 3])
    png, jpeg = files.encode(image), files.encode(image, "jpeg")
    records = [files.example(png, 0), files.example(jpeg, 1), files.example(png, 2)]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo("a/b")
        member.size = 300
        tar.addfile(member, io.BytesIO(bytes(range(100)) * 3))
    return {
        "png": png,
        "jpeg": jpeg,
        "tfrecord": b"".join(map(files.record_bytes, records)),
        "example": records[0],
        "idx": files.idx(image[np.newaxis, ..., 0]),
        "gzip": gzip.compress(files.idx(image[np.newaxis, ..., 0])),
        "cifar": files.cifar_records([1, 2])[0],
        "tar": buffer.getvalue(),
    }


def read_tfrecord(path):
    """All examples of a TFRecord file, decoded."""
    folder = path.parent
    (folder / "labels.txt").write_text("0:a\n1:b\n2:c\n")
    path = path.rename(folder / "x_train.tfrecord")
    dataset = inputs.get_dataset("tfrecord", "train", folder, image_size=28)
    images, labels = dataset.source.arrays
    assert images.shape[1:] == (28, 28, 3)
    assert set(labels.tolist()) <= {0, 1, 2}


def read_example(path):
    """A record whose data are damaged, though their checksum is right."""
    path.write_bytes(files.record_bytes(path.read_bytes()))
    read_tfrecord(path)


def read_idx(path):
    """An IDX file of images."""
    assert mnist.read_idx(str(path), (28, 28)).shape[1:] == (28, 28)


def read_cifar(path):
    """A CIFAR-10 file of two records."""
    images, labels = cifar10.read_binary(str(path), 2, Tolerance())
    assert images.shape == (2, 32, 32, 3)
    assert labels.max() <= 9


def read_tar(path):
    """An archive: what it extracts is inside its folder."""
    target = path.parent / "inner" / "target"
    archives.extract(path, target)
    outside = {each for each in path.parent.rglob("*") if target not in (each, *each.parents)}
    assert outside == {path, target.parent}


DECODE = functools.cache(decoding.Decoder)


def read_image(path):
    """An image file."""
    assert DECODE(3)(path.read_bytes()).shape[-1] == 3


READERS = {
    "png": read_image,
    "jpeg": read_image,
    "tfrecord": read_tfrecord,
    "example": read_example,
    "idx": read_idx,
    "gzip": lambda path: read_idx(path.rename(path.with_suffix(".gz"))),
    "cifar": read_cifar,
    "tar": read_tar,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_damaged_files_are_read_or_rejected(kind, tmp_path_factory):
    """Whatever happened to a file, its reader answers or raises a ValueError with a message."""

    @FUZZ
    @given(mutations(good_files()[kind]))
    @example(good_files()[kind])
    @example(b"")
    def check(content):
        path = tmp_path_factory.mktemp("file") / "file"
        path.write_bytes(content)
        message = "read"
        try:
            READERS[kind](path)
        except ValueError as error:
            message = str(error)
        assert message

    check()


@FUZZ
@given(st.binary(max_size=3000))
def test_record_survives_and_each_change_is_found(tmp_path_factory, data):
    """A record reads back as it was written; with any one byte changed, it does not."""
    path = tmp_path_factory.mktemp("file") / "file"
    content = files.record_bytes(data)
    path.write_bytes(content)
    assert tfrecords.index_file(str(path), Tolerance()).read(0) == data
    place = len(data) * 7919 % len(content)
    changed = bytearray(content)
    changed[place] ^= 1 + len(data) % 255
    path.write_bytes(changed)
    with pytest.raises(CorruptRecordError, match="record 0"):
        tfrecords.index_file(str(path), Tolerance()).read(0)


@FUZZ
@given(st.binary(max_size=100))
def test_labels_file_is_read_or_rejected(tmp_path_factory, text):
    """Any labels.txt names its classes or is rejected."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "labels.txt").write_bytes(text)
    with contextlib.suppress(ValueError):
        names = slim_files.read_class_names(str(folder))
        assert len(names) >= 1
