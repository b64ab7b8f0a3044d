"""Decoded images are kept in a file, which counts only if it belongs to the dataset's files."""

import os
import time

import numpy as np
import pytest

from model_deploy import inputs
from model_deploy.inputs.files import kept_files
from model_deploy.inputs.reading import in_memory
from tests.inputs import files

pytestmark = pytest.mark.one_mode

_SIDE = 256
_COUNT = 48  # of these more than 8 MiB are decoded


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Records of images that are worth being kept; the cache folder is the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _write(tmp_path / "data", seed=0)
    return tmp_path / "data"


def _write(folder, seed):
    folder.mkdir(exist_ok=True)
    images = [np.full([_SIDE, _SIDE, 3], (seed + i) % 256, np.uint8) for i in range(_COUNT)]
    records = [files.example(files.encode(image), i % 3) for i, image in enumerate(images)]
    files.write_records(folder / "x_train.tfrecord", records)


def _arrays(folder, **options):
    dataset = inputs.get_dataset(
        "tfrecord", "train", folder, image_size=_SIDE, num_classes=3, **options
    )
    return dataset.source.arrays


def _kept(folder):
    return sorted(folder.rglob("*.npz"))


@pytest.fixture
def decoding(monkeypatch):
    """How often images were decoded, as a list that grows."""
    calls, decode_all = [], in_memory.decode_all
    monkeypatch.setattr(
        in_memory, "decode_all", lambda *arguments: calls.append(1) or decode_all(*arguments)
    )
    return calls


def test_second_start_decodes_nothing(folder, decoding):
    """The same images and labels come from the file, beside the records, without decoding."""
    first, second = _arrays(folder), _arrays(folder)
    assert len(decoding) == 1
    assert len(_kept(folder)) == 1
    for new, kept in zip(first, second, strict=True):
        np.testing.assert_array_equal(new, kept)
        assert new.dtype == kept.dtype


def test_changed_records_are_decoded_again(folder, decoding, capsys):
    """A file of other records is replaced, and a line says so."""
    _arrays(folder)
    _write(folder, seed=100)
    os.utime(folder / "x_train.tfrecord", ns=(0, time.time_ns() + 10**9))
    images, _ = _arrays(folder)
    assert images[0, 0, 0, 0] == 100
    assert capsys.readouterr().err.count("is of other files: images are decoded again\n") == 1
    np.testing.assert_array_equal(_arrays(folder)[0], images)
    assert len(decoding) == 2
    assert len(_kept(folder)) == 1


def test_a_damaged_file_is_made_again(folder, decoding, capsys):
    """A file that is not whole counts for nothing, and a line says so."""
    images, _ = _arrays(folder)
    [kept] = _kept(folder)
    content = kept.read_bytes()
    a_bit = content[: 10**6] + bytes([content[10**6] ^ 1]) + content[10**6 + 1 :]
    for damaged in (content[: len(content) // 2], b"", b"no archive" * 99, a_bit):
        kept.write_bytes(damaged)
        np.testing.assert_array_equal(_arrays(folder)[0], images)
        assert capsys.readouterr().err.count("is damaged: images are decoded again\n") == 1
    np.testing.assert_array_equal(_arrays(folder)[0], images)
    assert len(decoding) == 5


def test_other_settings_have_a_file_of_their_own(folder, decoding, capsys):
    """Labels that are counted otherwise are not those of the file."""
    _arrays(folder)
    with pytest.raises(ValueError, match="label must be from 0 to 2, got -1"):
        _arrays(folder, label_offset=1)
    assert len(decoding) == 2
    assert capsys.readouterr().err == ""


def test_a_folder_that_cannot_be_written_is_no_error(folder, decoding, tmp_path, monkeypatch):
    """The file is then in the cache folder; where that cannot be written either, there is none."""
    replaced = kept_files.replaced_file

    def refused(path, mode):
        if os.fspath(path).startswith(str(folder)):
            raise PermissionError(path)
        return replaced(path, mode)

    monkeypatch.setattr(kept_files, "replaced_file", refused)
    images, _ = _arrays(folder)
    assert [path.parent for path in _kept(tmp_path)] == [tmp_path / "cache/model_deploy/decoded"]
    np.testing.assert_array_equal(_arrays(folder)[0], images)
    assert len(decoding) == 1

    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    np.testing.assert_array_equal(_arrays(folder)[0], images)
    assert len(decoding) == 2


def test_what_is_not_kept(folder, decoding):
    """Images of which some were skipped, so that they are reported at each start, and few images,
    which are decoded as fast as a file is found.
    """
    path = folder / "x_train.tfrecord"
    path.write_bytes(path.read_bytes() + files.record_bytes(b"no example"))
    for _ in range(2):
        assert len(_arrays(folder, skip_corrupt_records=1)[1]) == _COUNT
    files.write_examples(folder / "small", [5])
    inputs.get_dataset("tfrecord", "train", folder / "small", image_size=8)
    assert len(decoding) == 3
    assert _kept(folder) == []
