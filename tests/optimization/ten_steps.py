"""Ten steps of an optimizer from the same start with the same gradients, by TensorFlow and NumPy.

The functions `adamw`, `lamb`, `lars` and so on are written from the equations of the papers; each
returns the values of one variable after each step.
"""

import numpy as np
import tensorflow.compat.v1 as tf

STEPS = 10
SHAPES = {"layer/weights": (4, 3), "layer/biases": (3,), "norm/gamma": (3,), "table": (6, 2)}
# Sines and cosines of whole numbers: gradients that differ in size and sign.
START = {
    name: 0.5 * np.sin(np.arange(1.0, 1 + np.prod(shape))).reshape(shape)
    for name, shape in SHAPES.items()
}
START["layer/biases"] = np.zeros(3)
# The rows that the gradient of `table` has in each step, one of them twice; row 5 never.
ROWS = [[step % 5, (step + 2) % 5, step % 5] for step in range(STEPS)]


def row_gradients(step):
    """The rows of the gradient of `table` at `step`, [3, 2]."""
    return np.cos(np.arange(6.0) + step).reshape(3, 2)


def gradient(name, step):
    """The gradient of a variable at `step`, dense."""
    if name != "table":
        shape = SHAPES[name]
        return np.cos(0.7 * np.arange(np.prod(shape)) + 3 * step).reshape(shape) * 2.0**-step
    dense = np.zeros(SHAPES[name])
    np.add.at(dense, ROWS[step], row_gradients(step))
    return dense


def gradients(name):
    """The gradients of all steps."""
    return [gradient(name, step) for step in range(STEPS)]


def feeds(sparse):
    """Placeholders of the gradients by name, and what to feed at a step."""
    dense = {name: tf.placeholder(tf.float32, shape) for name, shape in SHAPES.items()}
    if not sparse:
        return dense, lambda step: {dense[name]: gradient(name, step) for name in SHAPES}
    rows, indices = tf.placeholder(tf.float32, [3, 2]), tf.placeholder(tf.int32, [3])
    tensors = {**dense, "table": tf.IndexedSlices(rows, indices, tf.constant([6, 2]))}

    def at(step):
        fed = {dense[name]: gradient(name, step) for name in SHAPES if name != "table"}
        return {**fed, rows: row_gradients(step), indices: ROWS[step]}

    return tensors, at


def run(optimizer, sparse=False):
    """The values of each variable after each step, by name, each [STEPS, ...]."""
    variables = {
        name: tf.get_variable(name, initializer=tf.constant(value, tf.float32))
        for name, value in START.items()
    }
    tensors, at = feeds(sparse)
    update = optimizer.apply_gradients([(tensors[name], variables[name]) for name in SHAPES])
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(STEPS):
            session.run(update, at(step))
            found.append(session.run(variables))
    return {name: np.stack([values[name] for values in found]) for name in SHAPES}


def adamw(w, grads, *, rate, decay, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """Loshchilov and Hutter, algorithm 2, with the decay times the rate."""
    m, v, values = 0.0, 0.0, []
    for t, g in enumerate(grads, start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        step = np.sqrt(1 - beta2**t) / (1 - beta1**t) * m / (np.sqrt(v) + epsilon)
        w = w - rate * (step + decay * w)
        values.append(w)
    return np.stack(values)


def lamb(w, grads, *, rate, decay, beta1=0.9, beta2=0.999, epsilon=1e-6, scaled=True):
    """You et al. 2019, algorithm 2; without scaling Adam with epsilon behind the correction."""
    m, v, values = 0.0, 0.0, []
    for t, g in enumerate(grads, start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        u = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
        ratio = 1.0
        if scaled:
            u = u + decay * w
            lengths = np.linalg.norm(w), np.linalg.norm(u)
            ratio = lengths[0] / lengths[1] if min(lengths) > 0 else 1.0
        w = w - rate * ratio * u
        values.append(w)
    return np.stack(values)


def lars(w, grads, *, rate, decay, momentum=0.9, coefficient=0.001, scaled=True):
    """You et al. 2017, algorithm 1; without scaling plain momentum."""
    v, values = 0.0, []
    for g in grads:
        ratio = 1.0
        if scaled:
            lengths = np.linalg.norm(w), np.linalg.norm(g)
            if min(lengths) > 0:
                ratio = coefficient * lengths[0] / (lengths[1] + decay * lengths[0])
            g = g + decay * w  # noqa: PLW2901 - as in the paper, the gradient with the decay
        v = momentum * v + rate * ratio * g
        w = w - v
        values.append(w)
    return np.stack(values)


def nesterov(w, grads, *, rate, momentum):
    """Sutskever et al. 2013, equations 3 and 4, at the points where gradients are taken.

    Their `w` is where the next gradient is not taken: this returns `w + momentum * v`.
    """
    v, values = 0.0, []
    for g in grads:
        ahead = w
        w = ahead - momentum * v
        v = momentum * v - rate * g
        w = w + v + momentum * v
        values.append(w)
    return np.stack(values)
