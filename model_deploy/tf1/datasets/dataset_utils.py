"""`dataset_utils`: records, files of labels, downloads."""

import contextlib
import filecmp
import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from model_deploy.inputs import download_file, extract_archive

LABELS_FILENAME = "labels.txt"


def int64_feature(values: Any) -> tf.train.Feature:
    """A feature of one integer, or of several."""
    return tf.train.Feature(int64_list=tf.train.Int64List(value=_as_list(values)))


def bytes_list_feature(values: Iterable[bytes]) -> tf.train.Feature:
    """A feature of several texts of bytes."""
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def float_list_feature(values: Iterable[float]) -> tf.train.Feature:
    """A feature of several numbers."""
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def bytes_feature(values: bytes) -> tf.train.Feature:
    """A feature of one text of bytes."""
    return bytes_list_feature([values])


def float_feature(values: Any) -> tf.train.Feature:
    """A feature of one number, or of several."""
    return float_list_feature(_as_list(values))


def _as_list(values: Any) -> Any:
    return values if isinstance(values, tuple | list) else [values]


def image_to_tfexample(
    image_data: bytes, image_format: bytes, height: int, width: int, class_id: int
) -> tf.train.Example:
    """The record of an image and its label.

    Args:
      image_data: the image, encoded.
      image_format: how, such as `b"png"`.
      height: in pixels.
      width: in pixels.
      class_id: the label.
    """
    features = {
        "image/encoded": bytes_feature(image_data),
        "image/format": bytes_feature(image_format),
        "image/class/label": int64_feature(class_id),
        "image/height": int64_feature(height),
        "image/width": int64_feature(width),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


def download_url(url: str, dataset_dir: str) -> str:
    """Downloads a file, unless one of its name is there; returns its path.

    Args:
      url: HTTP or HTTPS; the last part of its path is the name of the file.
      dataset_dir: where the file goes.

    Raises:
      ValueError: if the URL names no file, or the download fails or is cut off.
      OSError: if the folder cannot be made.
    """
    path = os.path.join(dataset_dir, url.split("?", 1)[0].rsplit("/", 1)[-1])
    if os.path.isfile(path):
        logging.info("%s is there already and is not downloaded", path)
        return path
    return download_file(url, dataset_dir)


def download_and_uncompress_tarball(tarball_url: str, dataset_dir: str) -> None:
    """Downloads a tar archive and extracts it.

    Only plain files and folders come out of it, all of them inside of the folder. Files that are
    there stay as they are.

    Args:
      tarball_url: HTTP or HTTPS.
      dataset_dir: the folder, of the archive as well.

    Raises:
      ValueError: if the download fails, the archive is broken or has something else in it, or a
        file is there already with another content.
      OSError: if the folder cannot be made.
    """
    _extract(download_url(tarball_url, dataset_dir), dataset_dir)


def download_and_uncompress_zipfile(zip_url: str, dataset_dir: str) -> None:
    """Downloads a zip archive and extracts it, as `download_and_uncompress_tarball` does.

    Args:
      zip_url: HTTP or HTTPS.
      dataset_dir: the folder, of the archive as well.

    Raises:
      ValueError: as there.
      OSError: as there.
    """
    _extract(download_url(zip_url, dataset_dir), dataset_dir)


def _extract(archive: str, folder: str) -> None:
    target = pathlib.Path(folder)
    with tempfile.TemporaryDirectory(prefix=".extracted-", dir=folder) as temporary:
        extract_archive(archive, temporary)
        files = [
            (path, target / path.relative_to(temporary))
            for path in sorted(pathlib.Path(temporary).rglob("*"))
        ]
        for path, place in files:
            same = path.is_dir() if place.is_dir() else _has_same_content(path, place)
            if os.path.lexists(place) and not same:
                raise ValueError(
                    f"{place} must not be there, or be as in {archive}, got another file; nothing "
                    "was extracted"
                )
        for path, place in files:
            if path.is_dir():
                place.mkdir(exist_ok=True)
            elif not place.exists():
                path.replace(place)


def _has_same_content(path: pathlib.Path, place: pathlib.Path) -> bool:
    return path.is_file() and place.is_file() and filecmp.cmp(path, place, shallow=False)


def write_label_file(
    labels_to_class_names: Mapping[int, str], dataset_dir: str, filename: str = LABELS_FILENAME
) -> None:
    """Writes the names of the labels, one `label:name` per line.

    Args:
      labels_to_class_names: label -> name.
      dataset_dir: the folder.
      filename: the file in it.
    """
    with tf.gfile.Open(os.path.join(dataset_dir, filename), "w") as file:
        for label, name in labels_to_class_names.items():
            file.write(f"{label}:{name}\n")


def has_labels(dataset_dir: str, filename: str = LABELS_FILENAME) -> bool:
    """Whether there is a file of the names of the labels."""
    found: bool = tf.gfile.Exists(os.path.join(dataset_dir, filename))
    return found


def read_label_file(dataset_dir: str, filename: str = LABELS_FILENAME) -> dict[int, str]:
    """The names of the labels, by label.

    Args:
      dataset_dir: the folder.
      filename: the file in it, with one `label:name` per line.

    Raises:
      ValueError: if a line is not like this.
    """
    path = os.path.join(dataset_dir, filename)
    with tf.gfile.Open(path) as file:
        lines = file.read().splitlines()
    names = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            label, separator, name = line.partition(":")
            if not separator or not label.strip().isdecimal():
                raise ValueError(f"{path}: line {number} must be 'label:name', got {line!r}")
            names[int(label)] = name
    return names


def open_sharded_output_tfrecords(
    exit_stack: contextlib.ExitStack, base_path: str, num_shards: int
) -> list[Any]:
    """Opens `base_path-00000-of-<num_shards>` and the others, to write records.

    Args:
      exit_stack: closes them.
      base_path: the start of their names.
      num_shards: how many.

    Returns:
      A `tf.python_io.TFRecordWriter` per file.
    """
    return [
        exit_stack.enter_context(
            tf.python_io.TFRecordWriter(f"{base_path}-{shard:05d}-of-{num_shards:05d}")
        )
        for shard in range(num_shards)
    ]
