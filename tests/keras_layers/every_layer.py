"""Models of every layer: one model for each kind of inputs, with a branch for each layer.

A branch is a dense layer, so that the gradient of the branch's layer reaches a variable, then the
layer, then logits; the logits of all branches are added.
"""

import inspect

import numpy as np
import tensorflow.compat.v1 as tf

from tests.goldens import NUM_CLASSES, NUM_EXAMPLES, Golden
from tests.keras_layers.layer_table import KINDS
from tests.keras_layers.models import KERASES

# No gradient passes these, or they take no fractions.
_OF_EXAMPLES = ("masked", "words", "preparation", "random")


def layers_of(library):
    """The names of each class of layers in a library, by class; some have several."""
    found = {}
    for name in dir(library.layers):
        value = getattr(library.layers, name)
        if inspect.isclass(value) and issubclass(value, library.layers.Layer):
            found.setdefault(value, []).append(name)
    return found


def rows(library, kind):
    """The names and makers of the layers of a kind that a library has."""
    return {name: row for name, row in KINDS[kind][0].items() if hasattr(library.layers, name)}


def _branch(library, kind, name, row, start):
    """The logits of one branch."""
    layers = library.layers

    def dense(units, role):
        return layers.Dense(units, name=f"{name.lower()}_{role}")

    layer = row(layers) if callable(row) else getattr(layers, name)(**row)
    before = start
    if kind not in _OF_EXAMPLES:
        before = dense(start.shape[-1], "before")(start)
    if kind == "films":
        rank = int(name[-2])
        before = layers.Lambda(lambda x: x[(slice(None),) * (2 + rank) + (0,) * (3 - rank)])(before)
    if kind in ("pairs", "attention"):
        other = dense(start.shape[-1], "other")(start)
        takes_list = kind == "pairs" or name in ("Attention", "AdditiveAttention")
        after = layer([before, other]) if takes_list else layer(before, other)
    else:
        after = layer(before)
    if after.dtype not in ("float32", tf.float32):
        after = layers.Lambda(lambda x: tf.cast(x, tf.float32) / 10.0)(after)
    return dense(NUM_CLASSES, "logits")(layers.Flatten()(after))


def model(library, kind, names=None):
    """A model with a branch for each layer of a kind, or for those of the names."""
    shape = KINDS[kind][1]
    start = library.Input(shape, dtype="int32" if kind == "words" else "float32")
    branches = [
        _branch(library, kind, name, row, start)
        for name, row in rows(library, kind).items()
        if names is None or name in names
    ]
    return library.Model(start, library.layers.Add()(branches) if branches[1:] else branches[0])


def _examples(kind):
    """As many examples as the other golden models have."""
    shape = (NUM_EXAMPLES, *KINDS[kind][1])
    generator = np.random.default_rng(1)
    if kind == "words":
        return generator.integers(0, 11, shape).astype(np.int32)
    if kind == "random":
        return generator.random(shape).astype(np.float32)
    examples = generator.uniform(-1, 1, shape).astype(np.float32)
    if kind == "masked":
        examples[::2, 3:] = 0
    return examples


def golden(library, kind, names=None):
    """The model as the laws take it."""

    def prepare(config):
        del config
        KERASES[library].utils.set_random_seed(1)
        return model_fn

    def model_fn(features, labels):
        logits = model(KERASES[library], kind, names)(features, training=True)
        tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return logits

    labels = np.arange(NUM_EXAMPLES) % NUM_CLASSES
    return Golden(f"every {kind} {library}", _examples(kind), labels, None, prepare=prepare)
