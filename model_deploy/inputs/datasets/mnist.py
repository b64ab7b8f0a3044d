"""MNIST (Y. LeCun, C. Cortes, C. Burges, 1998) and Fashion-MNIST (H. Xiao et al., 2017).

Reads the official files, `train-images-idx3-ubyte` and so on, compressed by gzip or not, or
TFRecords in the format of TF-Slim, whichever is in the folder.  An IDX file has a magic number (0,
0, the type 8 for bytes, the rank), each dimension in 4 bytes, big-endian, and the values.
"""

import contextlib
import gzip
import io
import os
import struct
import zlib
from typing import Any

import numpy as np

from model_deploy import file_systems
from model_deploy.inputs.datasets import dataset, slim_records
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance
from model_deploy.inputs.reading import sources

_SHAPE = (28, 28, 1)
_PREFIXES = {"train": "train", "test": "t10k"}
_MAX_EXAMPLES = 10_000_000  # a header with more is taken as corrupt
_CLASS_NAMES = {
    "mnist": tuple(str(digit) for digit in range(10)),
    "fashion_mnist": (
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
}


def _build(
    name: str,
    split: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    skip_corrupt_records: int = 0,
) -> dataset.Dataset:
    """Builds a dataset with 60,000 train and 10,000 test images, uint8 [28, 28, 1].

    Raises:
      ValueError: if files are missing, truncated or of another kind.
      CorruptRecordError: if more records are corrupt than `skip_corrupt_records`.
    """
    splits = tuple(_PREFIXES)
    dataset.check_split(name, split, splits)
    folder = dataset.required_folder(name, data_dir)
    class_names = _CLASS_NAMES[name]
    image_path = _find(folder, f"{_PREFIXES[split]}-images-idx3-ubyte")
    label_path = _find(folder, f"{_PREFIXES[split]}-labels-idx1-ubyte")
    if image_path is None and label_path is None:
        return slim_records.slim_dataset(
            name=name,
            split=split,
            splits=splits,
            data_dir=folder,
            image_shape=_SHAPE,
            class_names=class_names,
            skip_corrupt_records=skip_corrupt_records,
        )
    if image_path is None or label_path is None:
        raise ValueError(
            f"data_dir {folder!r} must have images and labels of split {split!r}, "
            f"got only {image_path or label_path!r}"
        )
    images, labels = _read_split(image_path, label_path, Tolerance(skip_corrupt_records))
    return dataset.Dataset(
        name=name,
        split=split,
        num_examples=len(labels),
        num_classes=len(class_names),
        class_names=class_names,
        image_shape=_SHAPE,
        splits=splits,
        source=sources.ArraySource(lambda: (images, labels)),
    )


def mnist(**arguments: Any) -> dataset.Dataset:
    """The MNIST dataset of handwritten digits; for arguments and errors see `_build`."""
    return _build("mnist", **arguments)


def fashion_mnist(**arguments: Any) -> dataset.Dataset:
    """The Fashion-MNIST dataset of clothes; for arguments and errors see `_build`."""
    return _build("fashion_mnist", **arguments)


def _find(folder: str, name: str) -> str | None:
    for suffix in ("", ".gz"):
        path = os.path.join(folder, name + suffix)
        if file_systems.is_file(path):
            return path
    return None


def _read_split(
    image_path: str, label_path: str, tolerance: Tolerance
) -> tuple[np.ndarray, np.ndarray]:
    images = read_idx(image_path, _SHAPE[:2])
    labels = read_idx(label_path, ())
    if len(images) != len(labels):
        raise ValueError(
            f"{label_path}: must have {len(images)} labels, as many as there are images in "
            f"{image_path}, got {len(labels)}"
        )
    good = labels < 10
    for record in np.flatnonzero(~good):
        reason = f"label must be from 0 to 9, got {labels[record]}"
        tolerance.skip(CorruptRecordError(label_path, int(record), reason))
    return images[good, :, :, np.newaxis], labels[good].astype(np.int64)


def read_idx(path: str, shape: tuple[int, ...]) -> np.ndarray:
    """Reads the records of an IDX file of bytes: uint8 [n, *shape].

    Raises:
      ValueError: if the file is missing, of another format, or too long.
      CorruptRecordError: if the file is truncated.
    """
    record_bytes = int(np.prod(shape, dtype=np.int64))
    header = struct.Struct(f">{2 + len(shape)}I")
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(file_systems.as_os_errors())
            file: Any = stack.enter_context(file_systems.open_file(path, "rb"))
            if path.endswith(".gz"):
                # Read first: `gzip` needs methods that TensorFlow's file objects lack.
                file = stack.enter_context(gzip.open(io.BytesIO(file.read())))
            start = file.read(header.size)
            if len(start) < header.size:
                raise CorruptRecordError(path, 0, f"header is truncated: got {len(start)} bytes")
            magic, count, *dimensions = header.unpack(start)
            expected_magic = 0x0800 + 1 + len(shape)
            if magic != expected_magic or tuple(dimensions) != shape or count > _MAX_EXAMPLES:
                raise ValueError(
                    f"{path}: header must have magic number {expected_magic}, a number of records "
                    f"of at most {_MAX_EXAMPLES} and dimensions {list(shape)}, "
                    f"got {magic}, {count} and {dimensions}"
                )
            data = file.read(count * record_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: must be a readable IDX file, got {error}") from error
    if len(data) < count * record_bytes:
        reason = f"is truncated: the file must have {count} records"
        raise CorruptRecordError(path, len(data) // record_bytes, reason)
    if len(data) > count * record_bytes:
        raise ValueError(f"{path}: must have {count} records, got more than that")
    return np.frombuffer(data, np.uint8).reshape([count, *shape])
