"""`flowers`: 3,670 photographs of 5 kinds of flowers, in TFRecords."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from model_deploy.tf1.datasets import records

SPLITS_TO_SIZES = {"train": 3320, "validation": 350}


def get_split(
    split_name: str, dataset_dir: str, file_pattern: str | None = None, reader: Any = None
) -> Any:
    """One split, see `dataset_factory.get_dataset`.

    Args:
      split_name: "train" or "validation".
      dataset_dir: the folder of the files.
      file_pattern: their names, with `%s` for the split; by default those of TF-Slim.
      reader: class of the reader; `tf.TFRecordReader` by default.

    Returns:
      A `slim.dataset.Dataset`.

    Raises:
      ValueError: for an unknown split.
    """
    label = tf.FixedLenFeature([], tf.int64, default_value=0)
    facts = records.Facts(
        name="flowers",
        file_pattern="flowers_%s_*.tfrecord",
        splits_to_sizes=SPLITS_TO_SIZES,
        num_classes=5,
        features=records.image_features("png", label),
        handlers={
            "image": slim.tfexample_decoder.Image(),
            "label": slim.tfexample_decoder.Tensor("image/class/label"),
        },
        descriptions={"image": "RGB, of any size.", "label": "An integer from 0 to 4."},
    )
    return records.split_of(facts, split_name, dataset_dir, file_pattern, reader)
