"""Variables of bfloat16, which TensorFlow's collective ops and accumulators do not have."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tests import clusters, harness
from tests.goldens import Golden, LogicalDevices

_NUMBERS = np.float32(2.0) ** (np.arange(32).reshape(16, 2) % 3)
_IDS = np.arange(16)[:, np.newaxis] * 5 % 3
_ALL_REDUCE = {"all_reduce": True}
WAYS = {
    "two clones": {"num_clones": 2},
    "copied parts": {"num_clones": 2, "accumulate_steps": 2, "copy_clones": True},
    "servers": {"num_clones": 2, "num_ps_tasks": 2},
    "synchronous replicas": {"num_replicas": 2, "num_ps_tasks": 1, "replicas_to_aggregate": 2},
    "all-reduce": {"num_clones": 2, **_ALL_REDUCE},
    "parts by all-reduce": {"num_clones": 2, "accumulate_steps": 2, **_ALL_REDUCE},
    "replicas by all-reduce": {"num_clones": 2, "num_replicas": 2, **_ALL_REDUCE},
    "16 bits between": {"num_replicas": 2, "wire_precision": "bfloat16", **_ALL_REDUCE},
}


def _model_fn(features, labels):
    """All numbers of three steps are halves and quarters that bfloat16 has."""
    del labels

    def variable(name, shape, **settings):
        start = tf.ones_initializer(tf.bfloat16)
        return tf.get_variable(name, shape, tf.bfloat16, start, **settings)

    numbers, ids = tf.cast(features[:, :2], tf.bfloat16), tf.cast(features[:, 2], tf.int32)
    products = tf.reduce_sum(numbers * variable("weights", [2]), 1)
    rows = tf.nn.embedding_lookup(variable("table", [3]), ids)
    tf.losses.add_loss(tf.reduce_mean(tf.cast(products + rows, tf.float32)))
    updated = variable("updated", [], trainable=False).assign_add(tf.cast(0.5, tf.bfloat16))
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, updated.op)


def _run(**settings):
    config = LogicalDevices(**settings)
    golden = Golden("halves", np.concatenate([_NUMBERS, _IDS], 1), _IDS, _model_fn)
    make = lambda: harness.sgd(0.25)  # noqa: E731
    if config.num_replicas > 1:
        return harness.train_replicas(config, golden, make)
    [target] = clusters.workers(1) if config.num_ps_tasks else [""]
    return [harness.Replica(config, golden, make)(target)]


@pytest.mark.one_mode
@pytest.mark.parametrize("way", WAYS)
def test_each_way_trains_them(way):
    """Values that bfloat16 has exactly end as those of one clone, to the last bit."""
    [expected] = _run()
    dtypes = {value.dtype.name for value in expected.values.values()}
    assert dtypes == {"bfloat16", "int64"}  # int64 of the step
    for run in _run(**WAYS[way]):
        for name, value in expected.values.items():
            if not (way == "synchronous replicas" and name == "updated"):  # of each replica
                np.testing.assert_array_equal(run.values[name], value, err_msg=name)
