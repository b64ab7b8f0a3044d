"""`dataset_factory`: datasets by name."""

from typing import Any

from model_deploy.tf1.datasets import cifar10, flowers, imagenet, mnist

datasets_map = {"cifar10": cifar10, "flowers": flowers, "imagenet": imagenet, "mnist": mnist}


def get_dataset(
    name: str,
    split_name: str,
    dataset_dir: str,
    file_pattern: str | None = None,
    reader: Any = None,
) -> Any:
    """One split of a dataset in TFRecords.

    Args:
      name: a key of `datasets_map`.
      split_name: such as "train"; which ones there are depends on the dataset.
      dataset_dir: the folder of the files.
      file_pattern: their names, with `%s` for the split; by default those of TF-Slim.
      reader: class of the reader; `tf.TFRecordReader` by default.

    Returns:
      A `slim.dataset.Dataset`, with `num_classes` and `labels_to_names` besides.

    Raises:
      ValueError: for an unknown name or split.
    """
    if name not in datasets_map:
        raise ValueError(f"name must be one of {', '.join(datasets_map)}, got {name!r}")
    return datasets_map[name].get_split(split_name, dataset_dir, file_pattern, reader)
