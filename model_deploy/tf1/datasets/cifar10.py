"""`cifar10`: 60,000 images of 32 x 32 in 10 classes, in TFRecords."""

import tensorflow.compat.v1 as tf

from model_deploy import slim
from model_deploy.tf1.datasets import records

SPLITS_TO_SIZES = {"train": 50_000, "test": 10_000}
_LABEL = tf.FixedLenFeature([], tf.int64, default_value=0)
_FACTS = records.Facts(
    name="cifar10",
    file_pattern="cifar10_%s.tfrecord",
    splits_to_sizes=SPLITS_TO_SIZES,
    num_classes=10,
    features=records.image_features("png", _LABEL),
    handlers={
        "image": slim.tfexample_decoder.Image(shape=[32, 32, 3]),
        "label": slim.tfexample_decoder.Tensor("image/class/label"),
    },
    descriptions={"image": "RGB, [32, 32, 3].", "label": "An integer from 0 to 9."},
)
get_split = records.split_getter(_FACTS)
