"""`mnist`: 70,000 handwritten digits of 28 x 28, in TFRecords."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from model_deploy.tf1.datasets import records

_SPLITS_TO_SIZES = {"train": 60_000, "test": 10_000}


def get_split(
    split_name: str, dataset_dir: str, file_pattern: str | None = None, reader: Any = None
) -> Any:
    """One split, see `dataset_factory.get_dataset`.

    Args:
      split_name: "train" or "test".
      dataset_dir: the folder of the files.
      file_pattern: their names, with `%s` for the split; by default those of TF-Slim.
      reader: class of the reader; `tf.TFRecordReader` by default.

    Returns:
      A `slim.dataset.Dataset`.

    Raises:
      ValueError: for an unknown split.
    """
    label = tf.FixedLenFeature([1], tf.int64, default_value=[0])
    facts = records.Facts(
        name="mnist",
        file_pattern="mnist_%s.tfrecord",
        splits_to_sizes=_SPLITS_TO_SIZES,
        num_classes=10,
        features=records.image_features("raw", label),
        handlers={
            "image": slim.tfexample_decoder.Image(shape=[28, 28, 1], channels=1),
            "label": slim.tfexample_decoder.Tensor("image/class/label", shape=[]),
        },
        descriptions={"image": "Grey, [28, 28, 1].", "label": "An integer from 0 to 9."},
    )
    return records.split_of(facts, split_name, dataset_dir, file_pattern, reader)
