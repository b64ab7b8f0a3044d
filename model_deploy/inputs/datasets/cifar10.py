"""CIFAR-10: 60,000 images of 32 x 32 in 10 classes (A. Krizhevsky, 2009).

Reads the official binary version (`data_batch_1.bin` ... `test_batch.bin`) or TFRecords in the
format of TF-Slim, whichever is in the folder.  The official pickled version is not
read: unpickling a download runs whatever code is in it.
"""

import os

import numpy as np

from model_deploy import file_systems
from model_deploy.inputs.datasets import dataset, slim_records
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance
from model_deploy.inputs.reading import sources

_CLASS_NAMES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_SHAPE = (32, 32, 3)
_FILES = {
    "train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    "test": ("test_batch.bin",),
}
_RECORDS_PER_FILE = 10_000
_RECORD_BYTES = 1 + 32 * 32 * 3  # the label, then all red, green and blue values
_SUBFOLDER = "cifar-10-batches-bin"  # the folder in the official archive


def cifar10(
    split: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    skip_corrupt_records: int = 0,
) -> dataset.Dataset:
    """The CIFAR-10 dataset: 50,000 train and 10,000 test images, uint8 [32, 32, 3].

    Raises:
      ValueError: if files are missing or truncated.
      CorruptRecordError: if more records are corrupt than `skip_corrupt_records`.
    """
    splits = tuple(_FILES)
    dataset.check_split("cifar10", split, splits)
    folder = dataset.required_folder("cifar10", data_dir)
    if file_systems.is_folder(os.path.join(folder, _SUBFOLDER)):
        folder = os.path.join(folder, _SUBFOLDER)
    paths = [os.path.join(folder, name) for name in _FILES[split]]
    if not any(map(file_systems.is_file, paths)):
        return slim_records.slim_dataset(
            name="cifar10",
            split=split,
            splits=splits,
            data_dir=folder,
            image_shape=_SHAPE,
            class_names=_CLASS_NAMES,
            skip_corrupt_records=skip_corrupt_records,
        )
    tolerance = Tolerance(skip_corrupt_records)
    parts = [read_binary(path, _RECORDS_PER_FILE, tolerance) for path in paths]
    images, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
    return dataset.Dataset(
        name="cifar10",
        split=split,
        num_examples=len(labels),
        num_classes=len(_CLASS_NAMES),
        class_names=_CLASS_NAMES,
        image_shape=_SHAPE,
        splits=splits,
        source=sources.ArraySource(lambda: (images, labels)),
    )


def read_binary(path: str, num_records: int, tolerance: Tolerance) -> tuple[np.ndarray, np.ndarray]:
    """Reads images, uint8 [n, 32, 32, 3], and labels, int64 [n], from a binary file.

    Args:
      path: the file.
      num_records: number of records that it must have.
      tolerance: how many records with an invalid label may be skipped.

    Raises:
      ValueError: if the file is missing or has another size.
      CorruptRecordError: if more labels are invalid than may be skipped.
    """
    try:
        with file_systems.as_os_errors(), file_systems.open_file(path, "rb") as file:
            # One byte more than needed, to notice a file that is too long.
            data = file.read(num_records * _RECORD_BYTES + 1)
    except OSError as error:
        raise ValueError(f"file of dataset 'cifar10' must be readable, got {error}") from error
    if len(data) > num_records * _RECORD_BYTES:
        raise ValueError(f"{path}: must have {num_records} records, got more than that")
    if len(data) < num_records * _RECORD_BYTES:
        raise CorruptRecordError(
            path,
            len(data) // _RECORD_BYTES,
            f"is truncated: the file must have {num_records} records in "
            f"{num_records * _RECORD_BYTES} bytes, got {len(data)} bytes",
        )
    records = np.frombuffer(data, np.uint8).reshape([num_records, _RECORD_BYTES])
    good = records[:, 0] < len(_CLASS_NAMES)
    for record in np.flatnonzero(~good):
        reason = f"label must be from 0 to {len(_CLASS_NAMES) - 1}, got {records[record, 0]}"
        tolerance.skip(CorruptRecordError(path, int(record), reason))
    planes = records[good, 1:].reshape([-1, 3, 32, 32])
    return np.ascontiguousarray(planes.transpose([0, 2, 3, 1])), records[good, 0].astype(np.int64)
