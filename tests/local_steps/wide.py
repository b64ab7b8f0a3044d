"""A small network, one of whose matrices is large enough to be sent as factors."""

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import slim
from tests.goldens import GOLDENS


def wide_models():
    """For each of two replicas a network with a matrix of which factors of rank 8 save a little."""
    golden = GOLDENS["slim_mlp"]
    features, labels = np.split(golden.features, 4), np.split(golden.labels, 4)

    def of_replica(index):
        parts = iter(range(2 * index, 2 * index + 2))

        def model_fn():
            k = next(parts)
            hidden = slim.fully_connected(tf.constant(features[k]), 40, scope="hidden")
            weights = slim.fully_connected(hidden, 30, activation_fn=None, scope="wide")
            one_hot = tf.one_hot(tf.constant(labels[k]) % 30, 30)
            tf.losses.softmax_cross_entropy(one_hot, weights)

        return model_fn

    return [of_replica(0), of_replica(1)]
