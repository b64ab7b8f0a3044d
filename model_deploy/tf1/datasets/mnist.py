"""`mnist`: 70,000 handwritten digits of 28 x 28, in TFRecords."""

import tensorflow.compat.v1 as tf

from model_deploy import slim
from model_deploy.tf1.datasets import records

_SPLITS_TO_SIZES = {"train": 60_000, "test": 10_000}
_LABEL = tf.FixedLenFeature([1], tf.int64, default_value=[0])
_FACTS = records.Facts(
    name="mnist",
    file_pattern="mnist_%s.tfrecord",
    splits_to_sizes=_SPLITS_TO_SIZES,
    num_classes=10,
    features=records.image_features("raw", _LABEL),
    handlers={
        "image": slim.tfexample_decoder.Image(shape=[28, 28, 1], channels=1),
        "label": slim.tfexample_decoder.Tensor("image/class/label", shape=[]),
    },
    descriptions={"image": "Grey, [28, 28, 1].", "label": "An integer from 0 to 9."},
)
get_split = records.split_getter(_FACTS)
