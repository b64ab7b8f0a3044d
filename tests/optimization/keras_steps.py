"""Prints what Keras' optimizers and schedules make of the ten steps, as JSON.

A program, as Keras runs eagerly, and the tests do not.
"""

import json

import keras
import numpy as np

from tests.optimization import ten_steps

RATE = 0.05
OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(RATE, epsilon=1e-3),
    "adamw": lambda: keras.optimizers.AdamW(RATE, weight_decay=0.1, epsilon=1e-3),
    # Keras decays by LAMB apart from the ratio, which the paper does not: without decay.
    "lamb": lambda: keras.optimizers.Lamb(RATE, epsilon=1e-3),
    "nesterov": lambda: keras.optimizers.SGD(RATE, momentum=0.8, nesterov=True),
    "momentum": lambda: keras.optimizers.SGD(RATE, momentum=0.8),
}
SCHEDULES = {
    "cosine": lambda: keras.optimizers.schedules.CosineDecay(RATE, 8, alpha=0.25),
    "piecewise": lambda: keras.optimizers.schedules.PiecewiseConstantDecay(
        [2, 5], [RATE, RATE / 2, RATE / 8]
    ),
}


def steps(optimizer):
    """The values of each variable after each step."""
    variables = {name: keras.Variable(value) for name, value in ten_steps.START.items()}
    found = {name: [] for name in variables}
    for step in range(ten_steps.STEPS):
        gradients = [np.float32(ten_steps.gradient(name, step)) for name in variables]
        optimizer.apply(
            [keras.ops.convert_to_tensor(each) for each in gradients], list(variables.values())
        )
        for name, variable in variables.items():
            found[name].append(keras.ops.convert_to_numpy(variable).tolist())
    return found


if __name__ == "__main__":
    has = {
        name: make
        for name, make in OPTIMIZERS.items()
        if name != "lamb" or hasattr(keras.optimizers, "Lamb")
    }
    rates = {
        name: [float(make()(step)) for step in range(ten_steps.STEPS)]
        for name, make in SCHEDULES.items()
    }
    print(
        json.dumps({"steps": {name: steps(make()) for name, make in has.items()}, "rates": rates})
    )
