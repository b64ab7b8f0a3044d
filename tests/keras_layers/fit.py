"""Prints what ten steps of `model.fit` make of the models, as JSON.

A program, as Keras runs eagerly here, and the tests do not.
"""

import json
import sys

import keras
import numpy as np
import tf_keras

from tests.keras_layers import models

LIBRARIES = {"keras": keras, "tf_keras": tf_keras}
STEPS = 10
RATE = 0.05


def fitted(name, library):
    """The weights, in the order of `get_weights`, after ten steps on the whole batch."""
    keras.utils.set_random_seed(1)
    golden = models.GOLDENS_OF[name]
    model = getattr(models, name)(library)
    model.compile(
        library.optimizers.SGD(RATE, momentum=0.9),
        library.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    rows = len(golden.features)
    model.fit(golden.features, golden.labels, rows, STEPS, shuffle=False, verbose=0)
    return [np.asarray(each).tolist() for each in model.get_weights()]


if __name__ == "__main__":
    print(
        json.dumps(
            {
                f"{name} {library}": fitted(name, LIBRARIES[library])
                for name, library in (each.split() for each in sys.argv[1:])
            }
        )
    )
