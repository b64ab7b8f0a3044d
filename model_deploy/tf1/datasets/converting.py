"""Official files become TFRecords with the names that TF-Slim gave them."""

import pathlib
import shutil
from collections.abc import Callable, Iterable

from absl import logging

from model_deploy.commands import make_folder
from model_deploy.inputs import Dataset, convert_dataset
from model_deploy.tf1.datasets import dataset_utils


def convert_splits(
    name: str,
    dataset_dir: str,
    targets: Iterable[tuple[str, Iterable[str]]],
    read_splits: Callable[[str], Iterable[Dataset]],
) -> None:
    """Downloads and converts what is not there yet; no file that is there is written over.

    All work is done in a folder inside of `dataset_dir` that goes away at the end. When it was
    killed, the same call goes on.

    Args:
      name: of the dataset.
      dataset_dir: the folder for the TFRecords and `labels.txt`.
      targets: for each split, its name and those of its files.
      read_splits: downloads into a folder and returns the splits, in the same order.

    Raises:
      ValueError: if a download fails, or its files are not those of the dataset.
      OSError: if the folder cannot be written.
    """
    folder = pathlib.Path(dataset_dir)
    files = {split: [folder / each for each in names] for split, names in targets}
    if all(path.exists() for paths in files.values() for path in paths):
        logging.info("%s has all files of %s already", folder, name)
        return
    make_folder("dataset_dir", folder)
    work = folder / f".{name}.converting"
    work.mkdir(exist_ok=True)
    for dataset in read_splits(str(work)):
        paths = files[dataset.split]
        made = convert_dataset(dataset, work / "records", name=name, num_shards=len(paths))
        for part, path in zip(made, paths, strict=True):
            if not path.exists():
                pathlib.Path(part).replace(path)
        if not dataset_utils.has_labels(dataset_dir):
            names = dict(enumerate(dataset.class_names))
            dataset_utils.write_label_file(names, dataset_dir)
    shutil.rmtree(work)
    logging.info("%s has all files of %s", folder, name)
