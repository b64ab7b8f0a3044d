"""Each optimizer takes the first step that its paper says."""

import math

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.training import OptimizerOptions, build_optimizer

# First step from w = 1 with gradient 2 (of the loss 2 w) and learning rate 0.1, by hand:
RATE, GRADIENT = 0.1, 2.0
FIRST_STEPS = {
    "sgd": ({}, 1 - RATE * GRADIENT),
    "momentum": ({"momentum": 0.5}, 1 - RATE * GRADIENT),
    # The accumulator starts at 0.1 and gets the squared gradient.
    "adagrad": ({}, 1 - RATE * GRADIENT / math.sqrt(0.1 + GRADIENT**2)),
    # Mean square 1 at the start: 0.9 * 1 + 0.1 * 4, then epsilon inside of the root.
    "rmsprop": (
        {"rmsprop_momentum": 0.0},
        1 - RATE * GRADIENT / math.sqrt(0.9 * 1 + 0.1 * GRADIENT**2 + 1.0),
    ),
    # The moments, corrected for their start at 0, are the gradient and its square;
    # epsilon is added before the correction (end of section 2 of the paper).
    "adam": ({"opt_epsilon": 0.01}, 1 - RATE * GRADIENT / (GRADIENT + 0.01 / math.sqrt(1 - 0.999))),
    # Updates start at 0: sqrt(epsilon) / sqrt(0.05 * 4 + epsilon).
    "adadelta": (
        {"opt_epsilon": 0.01},
        1 - RATE * GRADIENT * math.sqrt(0.01) / math.sqrt(0.05 * GRADIENT**2 + 0.01),
    ),
    # z = g - (sqrt(4.1) - sqrt(0.1)) / rate * w; the new weight is -z / (sqrt(4.1) / rate).
    "ftrl": ({}, -(GRADIENT - (math.sqrt(4.1) - math.sqrt(0.1)) / RATE) / (math.sqrt(4.1) / RATE)),
}
# For dense gradients, as here, they are the same.
FIRST_STEPS.update(
    {f"row_{name}": FIRST_STEPS[name] for name in ("momentum", "rmsprop", "adam", "ftrl")}
)
FIRST_STEPS["lazy_adam"] = FIRST_STEPS["adam"]


@pytest.mark.one_mode
@pytest.mark.parametrize("name", FIRST_STEPS)
def test_first_step(name, variable_kind):
    """The first step is the one of the paper, with the options given. The second one of momentum
    adds `momentum` times the first.
    """
    options, expected = FIRST_STEPS[name]
    weight = tf.get_variable("w", [], initializer=tf.ones_initializer())
    optimizer = build_optimizer(RATE, OptimizerOptions(optimizer=name, **options))
    step = optimizer.minimize(GRADIENT * weight)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(weight) == pytest.approx(expected, rel=1e-6)
        if name.endswith("momentum"):
            session.run(step)
            assert session.run(weight) == pytest.approx(1 - RATE * GRADIENT * (1 + 1 + 0.5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"optimizer": "lion"},
            "one of adadelta, adagrad, adam, adamw, ftrl, lamb, lars, lazy_adam, momentum, "
            "nesterov, rmsprop, row_adam, row_adamw, row_ftrl, row_momentum, row_nesterov, "
            "row_rmsprop, sgd, got 'lion'",
        ),
        ({"adam_beta1": 1.0}, "adam_beta1 must be less than 1, got 1.0"),
        ({"opt_epsilon": 0.0}, "opt_epsilon must be more than 0, got 0.0"),
        ({"ftrl_learning_rate_power": 0.5}, "ftrl_learning_rate_power must be at most 0, got 0.5"),
    ],
)
def test_rejects(options, message):
    """A setting out of its range names itself."""
    with pytest.raises(ValueError, match=message):
        OptimizerOptions(**options)
