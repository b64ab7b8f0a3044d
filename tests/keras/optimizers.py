"""Keras optimizers, by the names of the cases, of Keras 3 or tf-keras.

As a program it prints what ten steps of each make of the variables of `ten_steps`, as JSON: Keras
runs eagerly, and the tests do not.
"""

import importlib
import json
import sys

import keras
import numpy as np
import tensorflow as tf

from tests.optimization import ten_steps

RATE = 0.05


def cosine(keras):
    """From 0.05 to a quarter of it in 8 steps."""
    return keras.optimizers.schedules.CosineDecay(RATE, 8, alpha=0.25)


def piecewise(keras):
    """Falls twice."""
    return keras.optimizers.schedules.PiecewiseConstantDecay([2, 5], [RATE, RATE / 2, RATE / 8])


# An epsilon large enough to be seen where it stands.
OPTIMIZERS = {
    "sgd": lambda o, k: o.SGD(RATE),
    "sgd_exponential": lambda o, k: o.SGD(o.schedules.ExponentialDecay(RATE, 3, 0.5)),
    "sgd_decay": lambda o, k: o.SGD(RATE, weight_decay=0.1),
    "momentum": lambda o, k: o.SGD(RATE, momentum=0.8),
    "momentum_cosine": lambda o, k: o.SGD(cosine(k), momentum=0.8),
    "nesterov_piecewise": lambda o, k: o.SGD(piecewise(k), momentum=0.8, nesterov=True),
    "adam": lambda o, k: o.Adam(RATE, beta_1=0.8, beta_2=0.99, epsilon=1e-3),
    "adam_polynomial": lambda o, k: o.Adam(o.schedules.PolynomialDecay(RATE, 6, 0.01)),
    "adamw": lambda o, k: o.AdamW(cosine(k), weight_decay=0.1, epsilon=1e-3),
    "rmsprop": lambda o, k: o.RMSprop(RATE, rho=0.8, epsilon=1e-3),
    "rmsprop_momentum": lambda o, k: o.RMSprop(RATE, momentum=0.7, epsilon=1e-3),
    "rmsprop_centered": lambda o, k: o.RMSprop(cosine(k), momentum=0.7, centered=True),
    "adagrad": lambda o, k: o.Adagrad(RATE, initial_accumulator_value=0.01, epsilon=1e-3),
    "adagrad_from_0": lambda o, k: o.Adagrad(RATE, initial_accumulator_value=0.0, epsilon=1e-3),
    "adadelta": lambda o, k: o.Adadelta(0.5, rho=0.9, epsilon=1e-3),
    "ftrl": lambda o, k: o.Ftrl(RATE),
    "ftrl_all": lambda o, k: o.Ftrl(
        RATE,
        learning_rate_power=-0.6,
        l1_regularization_strength=0.01,
        l2_regularization_strength=0.02,
        l2_shrinkage_regularization_strength=0.03,
        beta=0.1,
    ),
    "clipnorm": lambda o, k: o.SGD(RATE, momentum=0.8, clipnorm=0.7),
    "clipvalue": lambda o, k: o.Adam(RATE, clipvalue=0.3),
    "global_clipnorm": lambda o, k: o.SGD(RATE, global_clipnorm=0.9),
    "excluded": lambda o, k: excluding(o.AdamW(RATE, weight_decay=0.1, epsilon=1e-3)),
}


def excluding(optimizer):
    """Leaves out of the decay what has these words in its name."""
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma"])
    return optimizer


def make(library, name):
    """The optimizer of a case."""
    keras = importlib.import_module(library)
    return OPTIMIZERS[name](keras.optimizers, keras)


def make_variables(library):
    """Variables with the start values of `ten_steps`, by name."""
    variable = keras.Variable if library == "keras" else tf.Variable
    return {
        name: variable(np.float32(value), name=name.replace("/", "_"))
        for name, value in ten_steps.START.items()
    }


def steps(library, name):
    """The values of each variable after each step, by the gradients of `ten_steps`."""
    variables = make_variables(library)
    optimizer = make(library, name)
    if library == "tf_keras":
        optimizer.build(list(variables.values()))
    found = {key: [] for key in variables}
    for step in range(ten_steps.STEPS):
        gradients = [tf.constant(ten_steps.gradient(each, step), tf.float32) for each in variables]
        optimizer.apply_gradients(zip(gradients, variables.values(), strict=True))
        for key, each in variables.items():
            found[key].append(each.numpy().tolist())
    return found


if __name__ == "__main__":
    print(json.dumps({each: {n: steps(each, n) for n in OPTIMIZERS} for each in sys.argv[1:]}))
