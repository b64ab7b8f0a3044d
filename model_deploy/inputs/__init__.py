"""Datasets, preprocessing and `tf.data` pipelines that feed clones and replicas.

>>> from model_deploy.inputs import get_dataset
>>> digits = get_dataset("digits", "train")
>>> digits.num_examples, digits.image_shape
(1437, (28, 28, 1))
"""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.inputs import preprocessing
    from model_deploy.inputs.augmentation import Augmentation
    from model_deploy.inputs.batches import split_batch
    from model_deploy.inputs.datasets.conversion import convert as convert_dataset
    from model_deploy.inputs.datasets.dataset import (
        Dataset,
        check_dataset_name,
        dataset_names,
        get_dataset,
        register_dataset,
    )
    from model_deploy.inputs.datasets.mnist import read_idx
    from model_deploy.inputs.datasets.texts import Corpus, Texts, read_texts
    from model_deploy.inputs.files.archives import extract as extract_archive
    from model_deploy.inputs.files.corrupt_records import CorruptRecordError
    from model_deploy.inputs.files.downloading import download_dataset, download_file
    from model_deploy.inputs.order.epochs import Order
    from model_deploy.inputs.pipelines.evaluation import EvalBatches, eval_batches
    from model_deploy.inputs.pipelines.holding import Held, held_in
    from model_deploy.inputs.pipelines.training import TrainBatches, train_batches
    from model_deploy.inputs.pipelines.user_records import RecordDataset
    from model_deploy.inputs.preprocessing import (
        Preprocessing,
        get_preprocessing,
        preprocessing_names,
        register_preprocessing,
    )
    from model_deploy.inputs.reading.sources import ArraySource, EncodedSource
    from model_deploy.inputs.tables.columns import Column
    from model_deploy.inputs.tables.csv_dataset import CsvDataset
    from model_deploy.inputs.tables.parquet_dataset import ParquetDataset

__all__ = [
    "ArraySource",
    "Augmentation",
    "Column",
    "Corpus",
    "CorruptRecordError",
    "CsvDataset",
    "Dataset",
    "EncodedSource",
    "EvalBatches",
    "Held",
    "Order",
    "ParquetDataset",
    "Preprocessing",
    "RecordDataset",
    "Texts",
    "TrainBatches",
    "check_dataset_name",
    "convert_dataset",
    "dataset_names",
    "download_dataset",
    "download_file",
    "eval_batches",
    "extract_archive",
    "get_dataset",
    "get_preprocessing",
    "held_in",
    "preprocessing",
    "preprocessing_names",
    "read_idx",
    "read_texts",
    "register_dataset",
    "register_preprocessing",
    "split_batch",
    "train_batches",
]

import_when_used(__name__)
