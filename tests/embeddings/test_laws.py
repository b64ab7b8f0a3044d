"""Tables in each way to train, on any number of clones, replicas and parameter servers."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import embeddings
from tests import clusters, harness
from tests.embeddings import models
from tests.goldens import NUM_EXAMPLES, Golden, LogicalDevices

_SERVERS = {"num_ps_tasks": 2}
_REPLICAS = {"num_replicas": 2}
WAYS = {
    "two clones": {"num_clones": 2},
    "copied clones": {"num_clones": 2, "copy_clones": True},
    "parts": {"num_clones": 2, "accumulate_steps": 2},
    "copied parts": {"num_clones": 2, "accumulate_steps": 2, "copy_clones": True},
    "servers": {"num_clones": 2, **_SERVERS},
    "copied on servers": {"num_clones": 2, "copy_clones": True, **_SERVERS},
    "replicas": {**_REPLICAS, **_SERVERS, "replicas_to_aggregate": 2},
    "all-reduce": {"num_clones": 2, "all_reduce": True},
    "replicas by all-reduce": {"num_clones": 2, **_REPLICAS, "all_reduce": True},
}
TABLES = {
    "growing": models.growing(),
    "rare": models.growing(min_steps=2, probability=0.8, without_row=0.5),
    "full": models.growing(max_rows=9, new_per_step=21, drop="rarest", drop_after=3),
    "fixed": models.fixed(),
}


def _run(config, table, make=harness.momentum):
    """All replicas, each after some steps of the whole batch."""
    golden = models.golden(table)
    if config.num_replicas > 1:
        return harness.train_replicas(config, golden, make, steps=models.STEPS)
    [target] = clusters.workers(1) if config.num_ps_tasks else [""]
    return [harness.Replica(config, golden, make)(target, models.STEPS)]


@functools.cache
def _one(table, *, on_servers):
    """What one clone ends with; limits of a full table are those of each shard."""
    config = LogicalDevices(**(_SERVERS if on_servers else {}))
    [run] = _run(config, TABLES[table])
    return models.by_id(run.values)


# A full table and a rare one grow, too. Copies know nothing of what makes a table rare, and a fixed
# one is a variable as any other.
CELLS = {
    "two clones": ("growing", "full"),
    "copied clones": ("growing",),
    "parts": ("rare", "fixed"),
    "copied parts": ("full",),
    "servers": ("rare", "full"),
    "copied on servers": ("full",),
    "replicas": ("full",),
    "all-reduce": ("full",),
    "replicas by all-reduce": ("rare", "fixed"),
}
# Those that also programs of TensorFlow 1 run.
_IN_BOTH_MODES = (("two clones", "growing"), ("servers", "full"), ("all-reduce", "full"))


@pytest.mark.parametrize(
    ("way", "table"),
    [
        pytest.param(*cell, marks=[] if cell in _IN_BOTH_MODES else [pytest.mark.one_mode])
        for way, tables in CELLS.items()
        for cell in itertools.product([way], tables)
    ],
)
def test_any_division_makes_the_same_rows(way, table):
    """The ids that have rows, their values, slots and counts are those of one clone."""
    on_servers = "full" in table and "num_ps_tasks" in WAYS[way]
    expected = _one(table, on_servers=on_servers)
    for run in _run(LogicalDevices(**WAYS[way]), TABLES[table]):
        harness.assert_close(models.by_id(run.values), expected)


# Distances of neighbours near 1, and what sums in another order are off.
_BFLOAT16, _ORDER = 2.0**-7, 1e-5
FEATURES = {
    "bfloat16": ({"num_clones": 2, "copy_clones": True, "precision": "bfloat16"}, _BFLOAT16),
    "compiled": ({"num_clones": 2, "xla": True}, _ORDER),
    "loss scale": ({"num_clones": 2, "loss_scale": 1024}, _ORDER),
    "16 bits between": ({**_SERVERS, "wire_precision": "bfloat16"}, _BFLOAT16),
}


@pytest.mark.one_mode
@pytest.mark.parametrize("feature", FEATURES)
def test_features_meet_tables(feature):
    """With other arithmetic the same ids have rows, whose values are off by its rounding."""
    settings, tolerance = FEATURES[feature]
    expected = _one("growing", on_servers=False)
    [run] = _run(LogicalDevices(**settings), TABLES["growing"])
    found = models.by_id({k: v for k, v in run.values.items() if not k.startswith("loss_scale/")})
    harness.assert_close(found, expected, tolerance)


@pytest.mark.one_mode
@pytest.mark.parametrize("kind", ["ragged", "sparse"])
def test_compiled_clones_combine_lists(kind):
    """XLA leaves alone what has the size of a step's ids, of which an example has 0 to 4."""
    lengths = (np.arange(NUM_EXAMPLES)[:, np.newaxis] + np.arange(models.STEPS)) % 5

    def model_fn(features, labels):
        own = features[:, models.STEPS + tf.cast(tf.train.get_or_create_global_step(), tf.int32)]
        ids = tf.boolean_mask(features[:, :4], tf.sequence_mask(own, 4))
        lists = tf.RaggedTensor.from_row_lengths(ids, own)
        lists = lists if kind == "ragged" else lists.to_sparse()
        rows = embeddings.look_up(TABLES["growing"], lists, combiner="mean")
        tf.losses.mean_squared_error(labels, tf.reduce_sum(tf.tanh(rows), 1))

    features = np.concatenate([models.IDS, lengths], 1)
    golden = Golden("lists", features, models.LABELS, model_fn)
    run, one = (
        harness.Replica(LogicalDevices(**settings), golden, harness.momentum)()
        for settings in ({"num_clones": 2, "xla": True}, {})
    )
    harness.assert_close(models.by_id(run.values), models.by_id(one.values), _ORDER)
