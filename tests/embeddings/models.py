"""Models with tables, whose ids differ from step to step, and what is left of them by id."""

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import embeddings
from tests.goldens import NUM_EXAMPLES, Golden, formula

STEPS = 6
# [examples, ids of each step]: in the first steps small ids, later larger ones.
IDS = (np.arange(NUM_EXAMPLES)[:, None] * 7 + np.arange(STEPS)[None] * 5) % (
    7 + 3 * np.arange(STEPS)[None]
)
LABELS = np.cos(np.arange(NUM_EXAMPLES)).astype(np.float32)
WIDTH = 4
START = embeddings.Normal(0.5, seed=3)


def growing(**settings):
    """A table with enough rows."""
    return embeddings.GrowingTable(
        **{"name": "items", "width": WIDTH, "max_rows": 64, "initial": START, **settings}
    )


def fixed(num_rows=64, **settings):
    """A table with a row for each id."""
    return embeddings.FixedTable(
        **{"name": "items", "width": WIDTH, "num_rows": num_rows, "initial": START, **settings}
    )


def golden(table, other=None):
    """A model that predicts a number from ids of the step, and from pairs of them.

    Args:
      table: for the ids and the pairs.
      other: a second table, for the pairs; None for the same.
    """

    def model_fn(features, labels):
        ids = features[:, tf.minimum(tf.train.get_or_create_global_step(), STEPS - 1)]
        rows = embeddings.look_up(table, ids)
        weights = tf.cast(features[:, :2] + 1, tf.float32)
        pairs = embeddings.look_up(other or table, features[:, :2], weights, combiner="mean")
        hidden = tf.concat([rows, pairs], 1)
        weight = tf.get_variable("weight", [2 * WIDTH, 1], initializer=formula)
        predictions = tf.matmul(hidden, weight)[:, 0]
        tf.losses.mean_squared_error(labels, predictions)
        return predictions

    return Golden("table", IDS.astype(np.int64), LABELS, model_fn)


def by_id(values, name="items"):
    """Values of a run, with those of a growing table by id: `items/values` -> {id: row}."""
    found = {}
    for scope in [name, *(f"{name}/shard_{i}" for i in range(4))]:
        if f"{scope}/index/ids" not in values:
            continue
        ids = values[f"{scope}/index/ids"]
        used = np.flatnonzero(ids >= 0)
        for key, value in values.items():
            kind = key.removeprefix(f"{scope}/")
            if key.startswith((f"{scope}/values", f"{scope}/index/seen", f"{scope}/index/counts")):
                rows = used if np.ndim(value) and len(value) >= len(ids) else []
                for row in rows:  # optimizers also have numbers of the whole table there
                    found[f"{name}/{kind}[{ids[row]}]"] = value[row]
    others = {key: value for key, value in values.items() if not key.startswith(f"{name}/")}
    shared = {key: value for key, value in values.items() if key.startswith(f"{name}/shared")}
    return {**found, **others, **shared}
