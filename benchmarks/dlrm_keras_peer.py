"""DLRM in Keras: `fit` with `Embedding` layers and Adam, which updates whole tables."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks import dlrm_work
from benchmarks.child import Requests
from benchmarks.keras_peer import Clock
from examples import dlrm


def serve(requests: Requests, batch_size: int, steps: int) -> None:
    """Trains `steps` steps per request; answers "examples/s"."""
    made = dlrm_work.clicks(batch_size)
    inputs = (np.log1p(made.numbers), *(made.ids[:, :, i] for i in range(made.ids.shape[2])))
    data = tf.data.Dataset.from_tensor_slices((inputs, made.labels)).repeat().prefetch(2)
    model = network()
    model.compile(
        keras.optimizers.Adam(dlrm_work.LEARNING_RATE),
        keras.losses.BinaryCrossentropy(from_logits=True),
    )
    clock = Clock()

    def measure() -> dict[str, float]:
        # The first step of a `fit` starts its iterator and is not timed.
        model.fit(data, steps_per_epoch=1 + steps, callbacks=[clock], verbose=0)
        return {"examples/s": batch_size * clock.steps_per_sec}

    model.fit(data, steps_per_epoch=1, verbose=0)
    requests.serve(measure)


def network() -> Any:
    """The network of `examples.dlrm`: logits [n, 1] of numbers [n, 13] and of 26 ids [n]."""
    layers = keras.layers
    numbers = keras.Input([dlrm.NUM_NUMBERS])
    ids = [keras.Input([], dtype="int64") for _ in dlrm.CARDINALITIES]
    dense = numbers
    for units in (*dlrm_work.BOTTOM, dlrm_work.WIDTH):
        dense = layers.Dense(units, "relu")(dense)
    rows = [
        layers.Embedding(count, dlrm_work.WIDTH)(each)
        for count, each in zip(dlrm.CARDINALITIES, ids, strict=True)
    ]
    net = layers.Concatenate()([dense, Pairs()([dense, *rows])])
    for units in dlrm_work.TOP:
        net = layers.Dense(units, "relu")(net)
    return keras.Model([numbers, *ids], layers.Dense(1)(net))


class Pairs(keras.layers.Layer):
    """Products of all pairs of different vectors."""

    def call(self, vectors: Any) -> Any:
        return dlrm.interactions(tf.stack(vectors, 1))
