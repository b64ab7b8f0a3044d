"""What the datasets of this package have in common: TFRecords that `slim` decodes."""

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import slim
from model_deploy.tf1.datasets import dataset_utils


class Facts(NamedTuple):
    """What is known of a dataset.

    Attributes:
      name: its name.
      file_pattern: the files of a split, with `%s` for it.
      splits_to_sizes: split -> number of examples.
      num_classes: labels are 0 to this - 1.
      features: name in a record -> how it is read.
      handlers: item -> how it is made of them.
      descriptions: item -> what it is.
    """

    name: str
    file_pattern: str
    splits_to_sizes: Mapping[str, int]
    num_classes: int
    features: Mapping[str, Any]
    handlers: Mapping[str, Any]
    descriptions: Mapping[str, str]


def image_features(image_format: str, label: Any) -> dict[str, Any]:
    """How the image and the label of a record are read.

    Args:
      image_format: what an image is where the record does not say it.
      label: how the label is read.
    """
    return {
        "image/encoded": tf.FixedLenFeature([], tf.string, default_value=""),
        "image/format": tf.FixedLenFeature([], tf.string, default_value=image_format),
        "image/class/label": label,
    }


def split_getter(
    facts: Facts, read_names: Callable[[str], dict[int, str] | None] | None = None
) -> Callable[..., Any]:
    """`get_split` of a dataset.

    Args:
      facts: the dataset.
      read_names: gets the folder and returns the names of the labels, or None; by default from
        `labels.txt` if there is one.
    """

    def get_split(
        split_name: str, dataset_dir: str, file_pattern: str | None = None, reader: Any = None
    ) -> Any:
        """One split as a `slim.dataset.Dataset`, for `slim.dataset_data_provider`.

        Args:
          split_name: one of the dataset's, such as "train".
          dataset_dir: the folder of the files.
          file_pattern: the names of the files, with `%s` for the split where it is in them; by
            default Slim's, or where there are no such files, those that
            `model_deploy.inputs.convert` writes.
          reader: class of the reader; `tf.TFRecordReader` by default.

        Raises:
          ValueError: for an unknown split.
        """
        if split_name not in facts.splits_to_sizes:
            raise ValueError(
                f"split name of dataset {facts.name!r} must be one of "
                f"{', '.join(facts.splits_to_sizes)}, got {split_name!r}"
            )
        return slim.dataset.Dataset(
            data_sources=_sources(facts, split_name, dataset_dir, file_pattern),
            reader=reader or tf.TFRecordReader,
            decoder=slim.tfexample_decoder.TFExampleDecoder(facts.features, facts.handlers),
            num_samples=facts.splits_to_sizes[split_name],
            items_to_descriptions=dict(facts.descriptions),
            num_classes=facts.num_classes,
            labels_to_names=(read_names or _names_in)(dataset_dir),
        )

    return get_split


def _sources(facts: Facts, split: str, folder: str, given: str | None) -> str:
    def path(pattern: str) -> str:
        return os.path.join(folder, pattern % split if "%s" in pattern else pattern)

    if given:
        return path(given)
    slims, ours = path(facts.file_pattern), path(f"{facts.name}_%s_*-of-*.tfrecord")
    return ours if not tf.gfile.Glob(slims) and tf.gfile.Glob(ours) else slims


def _names_in(folder: str) -> dict[int, str] | None:
    return dataset_utils.read_label_file(folder) if dataset_utils.has_labels(folder) else None
