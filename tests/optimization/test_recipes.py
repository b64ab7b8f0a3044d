"""AdamW, LAMB, LARS and Nesterov's momentum make the steps of their papers."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.optimization import (
    AdamWOptimizer,
    LAMBOptimizer,
    LARSOptimizer,
    OptimizerOptions,
    build_optimizer,
)
from tests.optimization import ten_steps

EXCLUDED = ("layer/biases", "norm/gamma")
# The options, and for a variable that is decayed and one that is not what NumPy says.
RECIPES = {
    "adamw": (
        {"optimizer_weight_decay": 0.1},
        lambda w, g: ten_steps.adamw(w, g, rate=0.05, decay=0.1),
        lambda w, g: ten_steps.adamw(w, g, rate=0.05, decay=0.0),
    ),
    "lamb": (
        {"optimizer_weight_decay": 0.1},
        lambda w, g: ten_steps.lamb(w, g, rate=0.05, decay=0.1),
        lambda w, g: ten_steps.lamb(w, g, rate=0.05, decay=0.0, scaled=False),
    ),
    "lars": (
        {"optimizer_weight_decay": 0.1, "lars_coefficient": 0.5, "momentum": 0.8},
        lambda w, g: ten_steps.lars(w, g, rate=0.05, decay=0.1, coefficient=0.5, momentum=0.8),
        lambda w, g: ten_steps.lars(w, g, rate=0.05, decay=0.0, scaled=False, momentum=0.8),
    ),
    "nesterov": (
        {"momentum": 0.8},
        lambda w, g: ten_steps.nesterov(w, g, rate=0.05, momentum=0.8),
        lambda w, g: ten_steps.nesterov(w, g, rate=0.05, momentum=0.8),
    ),
}


def _build(name, **more):
    return build_optimizer(0.05, OptimizerOptions(optimizer=name, **RECIPES[name][0], **more))


@pytest.mark.one_mode
@pytest.mark.parametrize("name", RECIPES)
def test_ten_steps_of_the_paper(name, variable_kind):
    """Ten steps are those of the equations; biases and gamma are neither decayed nor scaled."""
    _, decayed, excluded = RECIPES[name]
    found = ten_steps.run(_build(name))
    for variable, values in found.items():
        reference = excluded if variable in EXCLUDED else decayed
        expected = reference(ten_steps.START[variable], ten_steps.gradients(variable))
        np.testing.assert_allclose(values, expected, rtol=2e-5, atol=2e-6, err_msg=variable)


@pytest.mark.one_mode
@pytest.mark.parametrize("name", ["adamw", "lamb", "lars"])
def test_sparse_gradients_count_as_dense_ones(name, variable_kind):
    """Rows of a gradient, one of them twice, make the step of the dense gradient."""
    sparse = ten_steps.run(_build(name), sparse=True)["table"]
    expected = RECIPES[name][1](ten_steps.START["table"], ten_steps.gradients("table"))
    np.testing.assert_allclose(sparse, expected, rtol=2e-5, atol=2e-6)
    # Row 5 has no gradient, and only decays.
    assert np.all(np.abs(sparse[-1][5]) < np.abs(ten_steps.START["table"][5]))


_LENGTH = 0.5 / np.sqrt(2)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("optimizer", "gradient", "values"),
    [
        # Adam's first step is the rate; the decay takes its share of the rate and the value.
        (AdamWOptimizer(0.25, 0.5), [3, -2], [[3 - 0.25 - 0.125 * 3, 4 + 0.25 - 0.125 * 4]]),
        # The first step has signs for a direction; its length is the rate times that of (3, 4).
        (LAMBOptimizer(0.1, 0.0), [7, -2], [[3 - _LENGTH, 4 + _LENGTH]]),
        # The ratio is 1/5 * 5 / 10 = 1/10, the step (0.6, 0.8). Then |w| is 4: the ratio is 0.08,
        # the step (0.48, 0.64) and half the first.
        (LARSOptimizer(1.0, 0.5, 0.0, 0.2), [6, 8], [[2.4, 3.2], [2.4 - 0.78, 3.2 - 1.04]]),
    ],
)
def test_steps_by_hand(optimizer, gradient, values):
    """The first steps from (3, 4) with a constant gradient."""
    weight = tf.get_variable("w", initializer=tf.constant([3.0, 4.0]))
    step = optimizer.minimize(tf.reduce_sum(weight * tf.constant(gradient, tf.float32)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for expected in values:
            session.run(step)
            assert session.run(weight) == pytest.approx(expected, rel=1e-5)


@pytest.mark.one_mode
@pytest.mark.parametrize("make", [LAMBOptimizer, LARSOptimizer])
def test_no_gradient_and_no_length(make):
    """A gradient of zeros and a variable of zeros give no NaN."""
    zeros = tf.get_variable("zeros", initializer=tf.zeros([2]))
    ones = tf.get_variable("ones", initializer=tf.ones([2]))
    update = make(0.1, weight_decay=0.0).apply_gradients(
        [(tf.zeros([2]), zeros), (tf.zeros([2]), ones)]
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        assert session.run([zeros, ones])[0].tolist() == [0, 0]
        assert session.run(ones).tolist() == [1, 1]


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("name", "pattern"), [("adamw", ""), ("lamb", "nothing like it"), ("lars", "")]
)
def test_nothing_is_excluded(name, pattern):
    """With an empty pattern, or one that fits no name, every variable is decayed and scaled. A
    function's rate is that of the graph in which the step is made.
    """
    options = OptimizerOptions(optimizer=name, no_weight_decay=pattern, **RECIPES[name][0])
    found = ten_steps.run(build_optimizer(lambda: tf.constant(0.05), options))
    for variable, values in found.items():
        expected = RECIPES[name][1](ten_steps.START[variable], ten_steps.gradients(variable))
        np.testing.assert_allclose(values, expected, rtol=2e-5, atol=2e-6, err_msg=variable)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("adamw", tf.bfloat16),
        ("adamw", tf.float64),
        ("lamb", tf.float16),
        ("lars", tf.float16),
        ("lars", tf.bfloat16),
    ],
)
def test_other_types(name, dtype, variable_kind):
    """Variables of other float types are trained as such; a norm may be past float16's range."""
    start = np.full([64, 64], 12.0)  # the sum of squares is 589,824, beyond 65,504
    weight = tf.get_variable("w", initializer=tf.constant(start, dtype))
    update = _build(name, adamw_epsilon=1e-3, lamb_epsilon=1e-3).apply_gradients(
        [(tf.ones([64, 64], dtype), weight)]
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        value = session.run(tf.cast(weight, tf.float32))
    options = {"lamb": {"epsilon": 1e-3}, "adamw": {"epsilon": 1e-3}, "lars": {}}
    settings = {"decay": 0.1, **({"coefficient": 0.5} if name == "lars" else options[name])}
    reference = getattr(ten_steps, name)(start, [np.ones([64, 64])], rate=0.05, **settings)[0]
    np.testing.assert_allclose(value, reference, rtol=0.01)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdamWOptimizer(0.1, -0.5), "weight_decay must be at least 0, got -0.5"),
        (lambda: LAMBOptimizer(0.1, -0.5), "weight_decay must be at least 0, got -0.5"),
        (lambda: LARSOptimizer(0.1, momentum=-1), "momentum must be at least 0, got -1"),
        (lambda: LARSOptimizer(0.1, coefficient=-1), "coefficient must be at least 0, got -1"),
        (
            lambda: AdamWOptimizer(no_weight_decay="("),
            r"no_weight_decay must be a regular expression, got '\(': missing \)",
        ),
        (lambda: LAMBOptimizer(no_weight_decay="["), r"must be a regular expression, got '\['"),
        (lambda: OptimizerOptions(no_weight_decay="*"), r"a regular expression, got '\*'"),
    ],
)
def test_rejects(make, message):
    """A setting out of its range names itself."""
    with pytest.raises(ValueError, match=message):
        make()
