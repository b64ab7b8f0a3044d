"""`flowers`: 3,670 photographs of 5 kinds of flowers, in TFRecords."""

import tensorflow.compat.v1 as tf

from model_deploy import slim
from model_deploy.tf1.datasets import records

SPLITS_TO_SIZES = {"train": 3320, "validation": 350}
_LABEL = tf.FixedLenFeature([], tf.int64, default_value=0)
_FACTS = records.Facts(
    name="flowers",
    file_pattern="flowers_%s_*.tfrecord",
    splits_to_sizes=SPLITS_TO_SIZES,
    num_classes=5,
    features=records.image_features("png", _LABEL),
    handlers={
        "image": slim.tfexample_decoder.Image(),
        "label": slim.tfexample_decoder.Tensor("image/class/label"),
    },
    descriptions={"image": "RGB, of any size.", "label": "An integer from 0 to 4."},
)
get_split = records.split_getter(_FACTS)
