"""`imagenet`: the photographs of ILSVRC 2012, in TFRecords; label 0 is the background."""

import os
import tempfile

import tensorflow.compat.v1 as tf
from absl import logging

from model_deploy import slim
from model_deploy.inputs import download_file
from model_deploy.tf1.datasets import dataset_utils, records

# Whether the names of the labels are downloaded where the folder has no `labels.txt`.
LOAD_READABLE_NAMES = True
BASE_URL = "https://raw.githubusercontent.com/tensorflow/models/master/research/slim/datasets"
_SPLITS_TO_SIZES = {"train": 1_281_167, "validation": 50_000}
_NUM_CLASSES = 1001
_TIMEOUT_SECS = 20
_BOX = "image/object/bbox/"
_SIDES = ("ymin", "xmin", "ymax", "xmax")
_DESCRIPTIONS = {
    "image": "RGB, of any size.",
    "label": "An integer from 0 to 1000; 0 is the background.",
    "label_text": "The words of the label.",
    "object/bbox": "Boxes [n, 4]: top, left, bottom, right, from 0 to 1.",
    "object/label": "The label of each box, [n].",
}


def create_readable_names_for_imagenet_labels() -> dict[int, str]:
    """The names of the 1,001 labels, 0 being "background", from two files that are downloaded.

    Raises:
      ValueError: if the download fails, or the files do not have the names of 1,000 classes.
    """
    with tempfile.TemporaryDirectory() as folder:
        synsets, metadata = (
            _lines(download_file(f"{BASE_URL}/{name}", folder, timeout_secs=_TIMEOUT_SECS))
            for name in ("imagenet_lsvrc_2015_synsets.txt", "imagenet_metadata.txt")
        )
    words = dict(line.split("\t", 1) for line in metadata if "\t" in line)
    if len(synsets) != _NUM_CLASSES - 1 or not all(synset in words for synset in synsets):
        raise ValueError(
            f"files of {BASE_URL} must name {_NUM_CLASSES - 1} classes, got {len(synsets)} in "
            f"the one, {len(words)} in the other"
        )
    names = {0: "background"}
    names.update((label, words[synset]) for label, synset in enumerate(synsets, start=1))
    return names


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def _names(folder: str) -> dict[int, str] | None:
    """The names in `labels.txt`, which is written after a download where there is none."""
    if not LOAD_READABLE_NAMES:
        return None
    if dataset_utils.has_labels(folder):
        return dataset_utils.read_label_file(folder)
    try:
        names = create_readable_names_for_imagenet_labels()
    except ValueError as error:
        # Training needs no names: it must not end where no network is.
        logging.warning(
            "Labels of imagenet stay without names, as %s has none: %s",
            os.path.join(folder, dataset_utils.LABELS_FILENAME),
            error,
        )
        return None
    dataset_utils.write_label_file(names, folder)
    return names


_LABEL = tf.FixedLenFeature([], tf.int64, default_value=-1)
_FEATURES = {
    **records.image_features("jpeg", _LABEL),
    "image/class/text": tf.FixedLenFeature([], tf.string, default_value=""),
    "image/object/class/label": tf.VarLenFeature(tf.int64),
    **{f"{_BOX}{side}": tf.VarLenFeature(tf.float32) for side in _SIDES},
}
_HANDLERS = {
    "image": slim.tfexample_decoder.Image(),
    "label": slim.tfexample_decoder.Tensor("image/class/label"),
    "label_text": slim.tfexample_decoder.Tensor("image/class/text"),
    "object/bbox": slim.tfexample_decoder.BoundingBox(list(_SIDES), _BOX),
    "object/label": slim.tfexample_decoder.Tensor("image/object/class/label"),
}
_FACTS = records.Facts(
    name="imagenet",
    file_pattern="%s-*",
    splits_to_sizes=_SPLITS_TO_SIZES,
    num_classes=_NUM_CLASSES,
    features=_FEATURES,
    handlers=_HANDLERS,
    descriptions=_DESCRIPTIONS,
)
get_split = records.split_getter(_FACTS, read_names=_names)
