"""A network whose gradients are some packs, so that a rotated step has something to leave."""

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import slim
from tests.goldens import Golden, LogicalDevices

# Between replicas four packs of so many layers are left, two of them of a whole layer.
LAYERS, EXAMPLES = 5, 8


def _waves(shape, dtype=tf.float32, partition_info=None):
    """An initializer: sin(1), sin(2), ... over the shape, times 0.05."""
    del partition_info
    return 0.05 * tf.reshape(tf.sin(tf.range(1.0, 1.0 + int(np.prod(shape)))), shape)


def _model_fn(features, labels):
    net = features
    for i in range(LAYERS):
        net = slim.fully_connected(
            net,
            int(labels.shape[1]),
            weights_initializer=_waves,
            activation_fn=tf.nn.tanh,
            scope=f"layer_{i}",
        )
        net = slim.batch_norm(net, decay=0.9, scope=f"norm_{i}")
        net = tf.nn.dropout(net, rate=0.1)
    tf.losses.mean_squared_error(labels, net)


def deep(width):
    """A network of layers with so many units."""
    shape = (EXAMPLES, width)
    features = np.cos(np.arange(EXAMPLES * width)).reshape(shape).astype(np.float32)
    return Golden("deep", features, np.ones(shape, np.float32), _model_fn)


# A square of so many floats is nearly a pack of its own.
DEEP = deep(720)


def rotated(**options):
    """The configuration of a rotated step."""
    return LogicalDevices(all_reduce=True, rotate_steps=True, **options)
