"""Models of every layer, activation and loss of Keras: a few, each with many branches.

The examples go through a dense layer, whose gradient tells of all that comes after it, then through
each layer of a kind; of what all of them give, one dense layer makes logits.  A layer that both
libraries have is one of Keras 3 in one turn, and one of tf-keras in the other.
"""

import functools
import inspect

import keras
import numpy as np
import tensorflow.compat.v1 as tf

from tests.goldens import NUM_CLASSES, NUM_EXAMPLES, Golden
from tests.keras_layers.layer_table import ACTIVATIONS, GROUPS, KINDS, LOSSES, ONLY_KERAS_3
from tests.keras_layers.models import KERASES, normalizes_in_graphs

# No gradient passes these, or they take no fractions.
_OF_EXAMPLES = ("masked", "words", "tables", "preparation", "random")
_OF_TWO = ("pairs", "attention")
_FROM_A_LIST = ("Attention", "AdditiveAttention")
_ACCESS = ("get", "serialize", "deserialize")


def layers_of(library):
    """The names of each class of layers in a library, by class; some have several."""
    found = {}
    for name, value in vars(library.layers).items():
        if inspect.isclass(value) and issubclass(value, library.layers.Layer):
            found.setdefault(value, []).append(name)
    return found


def functions_of(module):
    """The names of the activations, or of the functions that are losses, in a module of Keras."""
    return [n for n, each in vars(module).items() if inspect.isfunction(each) and n not in _ACCESS]


def losses_of(library):
    """The names of the classes of losses of a library."""
    return [
        name
        for name, each in vars(library.losses).items()
        if inspect.isclass(each) and issubclass(each, library.losses.Loss) and name != "Loss"
    ]


def _in_turn(rows, turn, has):
    """The name, the row and the library of each row, of those that have what it names."""
    for index, (name, row) in enumerate(rows.items()):
        libraries = [each for each in KERASES.values() if has(each, name)]
        yield name, row, libraries[(index + turn) % len(libraries)]


def _has_layer(library, name):
    """Whether a library has a layer; models of rows can be made of both, but for some."""
    if name == "SpectralNormalization" and not normalizes_in_graphs(library):
        return False
    if any(hasattr(each.layers, name) for each in KERASES.values()):
        return hasattr(library.layers, name)
    return library is keras or name not in ONLY_KERAS_3


def _called(layer, *inputs):
    """What a layer gives in training."""
    trains = "training" in inspect.signature(getattr(layer, "call", layer)).parameters
    return layer(*inputs, **({"training": True} if trains else {}))


def _given(kind, examples):
    """What the layers of a kind get, and a second one for those that take two."""
    shape = KINDS[kind][1]
    start = tf.reshape(examples[:, : np.prod(shape)], (examples.shape[0], *shape))
    if kind in ("words", "tables"):
        return tf.cast((start + 1) * 5.5, tf.int32), None
    if kind == "masked":
        ended = start * np.array([1, 1, 1, 0, 0], np.float32)[:, None]
        return tf.where_v2(start[:, :1, :1] > 0, start, ended), None
    if kind in _OF_EXAMPLES:
        return start, None
    before = [keras.layers.Dense(shape[-1], name=f"{kind}_before")(start), None]
    if kind in _OF_TWO:
        before[1] = keras.layers.Dense(shape[-1], name=f"{kind}_other")(start)
    return before


def _branches(kind, turn, examples):
    """What each layer of a kind gives."""
    if kind == "activations":
        yield from _activations(turn, keras.layers.Dense(6, name="activated")(examples[:, :6]))
        return
    start, other = _given(kind, examples)
    rows = {
        name: row
        for name, row in KINDS[kind][0].items()
        if callable(row) or any(hasattr(each.layers, name) for each in KERASES.values())
    }
    for name, row, library in _in_turn(rows, turn, _has_layer):
        layer = row(library.layers) if callable(row) else getattr(library.layers, name)(**row)
        if kind == "films":
            rank = int(name[-2])
            yield _called(layer, start[(slice(None),) * (2 + rank) + (0,) * (3 - rank)])
        elif kind == "pairs" or name in _FROM_A_LIST:
            yield _called(layer, [start, other])
        elif kind == "attention":
            yield _called(layer, start, other)
        else:
            yield _called(layer, start)


def _activations(turn, start):
    names = dict.fromkeys(n for each in KERASES.values() for n in functions_of(each.activations))
    rows = {name: ACTIVATIONS.get(name, {}) for name in names}
    for name, row, library in _in_turn(rows, turn, lambda each, n: hasattr(each.activations, n)):
        function = getattr(library.activations, name)
        yield library.layers.Activation(functools.partial(function, **row) if row else name)(start)


def _add_losses(turn, labels, logits):
    """Adds each loss of Keras to `LOSSES`."""
    shares = 0.1 + 0.8 * tf.one_hot(labels, NUM_CLASSES)
    given = {
        "shares": (shares, tf.nn.softmax(logits)),
        "classes": (labels, tf.nn.softmax(logits)),
    }
    for name, (of, row), library in _in_turn(LOSSES, turn, lambda each, n: hasattr(each.losses, n)):
        # Of which one is a percentage.
        tf.losses.add_loss(0.01 * getattr(library.losses, name)(**row)(*given[of]))


def _numbers(value):
    """What a layer gives as float32, [batch, number]."""
    share = 0.1 if value.dtype.is_integer else 1.0
    return tf.reshape(tf.cast(value, tf.float32) * share, (-1, np.prod(value.shape[1:])))


def golden(group, turn):
    """The model of a group of kinds, in turn 0 or 1."""
    kinds = GROUPS[group]
    num_features = max(np.prod(KINDS[kind][1]) for kind in kinds if kind in KINDS)

    def prepare(config):
        del config
        keras.utils.set_random_seed(1)
        return model_fn

    def model_fn(features, labels):
        after = []
        for kind in kinds:
            after += [_numbers(value) for value in _branches(kind, turn, features)]
        logits = keras.layers.Dense(NUM_CLASSES, name="logits")(tf.concat(after, 1))
        tf.losses.sparse_softmax_cross_entropy(labels, logits)
        if "activations" in kinds:
            _add_losses(turn, labels, logits)
        return logits

    examples = np.random.default_rng(1).uniform(-1, 1, (NUM_EXAMPLES, num_features))
    labels = np.arange(NUM_EXAMPLES) % NUM_CLASSES
    return Golden(group, examples.astype(np.float32), labels, None, prepare=prepare)
