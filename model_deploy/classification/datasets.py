"""Finds the dataset that the options of a classifier name."""

from model_deploy import inputs
from model_deploy.classification.classifier import ClassifierOptions
from model_deploy.commands import named_as


def get_evaluation_dataset(options: ClassifierOptions) -> inputs.Dataset:
    """Returns the test split of the named dataset, or else its validation split.

    Raises:
      ValueError: if the dataset has neither split, or cannot be read.
    """
    try:
        return get_dataset(options, "test")
    except ValueError as no_test:
        try:
            return get_dataset(options, "validation")
        except ValueError as no_validation:
            raise ValueError(f"{no_test}; {no_validation}") from no_validation


def get_dataset(options: ClassifierOptions, split: str) -> inputs.Dataset:
    """Returns a split of the dataset that the options name.

    Raises:
      ValueError: as `inputs.get_dataset`, with the names of flags.
    """
    with named_as(data_dir="dataset_dir", split="dataset_split_name"):
        return inputs.get_dataset(
            options.dataset_name,
            split,
            options.dataset_dir,
            skip_corrupt_records=options.skip_corrupt_records,
        )
