"""A small Keras model and its data; as a program, what the model does outside of graphs.

    python -m tests.keras.models predict keras CHECKPOINT fit keras OUT.weights.h5 ...

prints a list, as JSON: of `predict`, the model's probabilities with the weights of a run; of `fit`,
the weights after ten steps of `model.fit` from those that it writes to the file before.
"""

import importlib
import json
import sys

import numpy as np

EXAMPLES, CLASSES, STEPS = 48, 3, 10
IMAGES = np.cos(np.arange(EXAMPLES * 36)).reshape(EXAMPLES, 6, 6, 1).astype(np.float32)
LABELS = (np.arange(EXAMPLES) * 7 % CLASSES).astype(np.int64)
# Of what a step takes of them.
BATCH_SIZE = 12


def build(library, **settings):
    """Two convolutions with batch norm, and a dense layer; logits [batch, 3]."""
    keras = importlib.import_module(library)
    layers = keras.layers
    images = keras.Input((6, 6, 1))
    decay = keras.regularizers.L2(0.01)
    net = layers.Conv2D(4, 3, kernel_regularizer=decay, use_bias=False, **settings)(images)
    net = layers.BatchNormalization(momentum=0.8)(net)
    net = layers.ReLU()(net)
    net = layers.Conv2D(4, 3, use_bias=False)(net)
    net = layers.BatchNormalization(momentum=0.8)(net)
    net = layers.Flatten()(net)
    return keras.Model(images, layers.Dense(CLASSES)(net))


def optimizer(library):
    """Momentum with a rate that falls."""
    optimizers = importlib.import_module(library).optimizers
    rate = optimizers.schedules.ExponentialDecay(0.05, 4, 0.5)
    return optimizers.SGD(rate, momentum=0.9, nesterov=True)


def loss(library):
    """Cross entropy of logits."""
    losses = importlib.import_module(library).losses
    return losses.SparseCategoricalCrossentropy(from_logits=True)


def _predict(library, path):
    from model_deploy.keras import load_checkpoint  # noqa: PLC0415 - of this program alone

    build(library)  # so that the names of the layers are others than in the run
    model = load_checkpoint(build(library), path)
    logits = model.predict(IMAGES, verbose=0)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (exponentials / exponentials.sum(axis=1, keepdims=True)).tolist()


def _fit(library, path):
    importlib.import_module(library).utils.set_random_seed(1)  # values, and so roundings, vary else
    model = build(library)
    model.save_weights(path)
    model.compile(optimizer(library), loss(library))
    batches = [np.resize(data, (STEPS * BATCH_SIZE, *data.shape[1:])) for data in (IMAGES, LABELS)]
    model.fit(*batches, batch_size=BATCH_SIZE, shuffle=False, verbose=0)
    return [weight.numpy().tolist() for weight in model.weights]


if __name__ == "__main__":
    runs = {"predict": _predict, "fit": _fit}
    asked = zip(*(sys.argv[i::3] for i in (1, 2, 3)), strict=True)
    print(json.dumps([runs[name](library, path) for name, library, path in asked]))
