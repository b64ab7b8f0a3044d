"""Learning rates at chosen steps, by hand."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.training import LearningRateOptions, build_learning_rate


def _rates(options, steps, steps_per_epoch, **more):
    step = tf.placeholder(tf.int64, [])
    rate = build_learning_rate(options, step, steps_per_epoch, **more)
    with tf.Session() as session:
        return [float(session.run(rate, {step: at})) for at in steps]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"learning_rate_decay_type": "fixed"}, [0.8, 0.8, 0.8, 0.8, 0.8], id="fixed"),
        # Falls by half every 2 epochs, which are 20 steps.
        pytest.param({"learning_rate_decay_factor": 0.5}, [0.8, 0.8, 0.4, 0.4, 0.1], id="stairs"),
        # A line from 0.8 to 0.2 over 20 steps, then level.
        pytest.param(
            {"learning_rate_decay_type": "polynomial", "end_learning_rate": 0.2},
            [0.8, 0.8 - 0.6 * 19 / 20, 0.2, 0.2, 0.2],
            id="line",
        ),
        # Rises over 4 epochs, which are 40 steps: 0.8 * (step + 1) / 40, up to the stairs.
        pytest.param(
            {"learning_rate_decay_factor": 0.5, "warmup_epochs": 4.0},
            [0.8 / 40, 0.8 * 20 / 40, 0.4, 0.4, 0.1],
            id="warm-up",
        ),
    ],
)
def test_rates(options, expected):
    """At steps 0, 19, 20, 39 and 60 of 10 an epoch, decaying over 2 epochs from 0.8."""
    settings = LearningRateOptions(learning_rate=0.8, num_epochs_per_decay=2.0, **options)
    assert _rates(settings, [0, 19, 20, 39, 60], 10) == pytest.approx(expected, rel=1e-6)


def test_four_clones_follow_the_epochs_of_one():
    """With a quarter of the steps an epoch, the rate of each epoch is the same."""
    options = LearningRateOptions(learning_rate=1.0, learning_rate_decay_factor=0.5)
    one = _rates(options, [0, 40, 80, 160, 240], 40)
    four = _rates(options, [0, 10, 20, 40, 60], 10)
    assert one == four == [1.0, 1.0, 0.5, 0.25, 0.125]


def test_epochs_that_are_no_whole_steps():
    """2 epochs of 7.3 steps are 15 steps: the rate falls at step 15."""
    options = LearningRateOptions(learning_rate=1.0, learning_rate_decay_factor=0.5)
    assert _rates(options, [14, 15, 29, 30], 7.3) == [1.0, 0.5, 0.5, 0.25]


@pytest.mark.parametrize("steps_per_epoch", [0, -1.0])
def test_rejects_no_steps(steps_per_epoch):
    """An epoch has steps."""
    with pytest.raises(
        ValueError, match=f"steps_per_epoch must be more than 0, got {steps_per_epoch}"
    ):
        build_learning_rate(LearningRateOptions(), tf.constant(0), steps_per_epoch)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be more than 0, got 0.0"),
        (
            {"learning_rate_decay_type": "sine"},
            "one of fixed, exponential, polynomial, cosine, one_cycle, piecewise, got 'sine'",
        ),
        ({"warmup_epochs": -1.0}, "warmup_epochs must be at least 0, got -1.0"),
        ({"num_epochs_per_decay": 0.0}, "num_epochs_per_decay must be more than 0, got 0.0"),
    ],
)
def test_rejects(options, message):
    """A schedule that makes no sense names the setting."""
    with pytest.raises(ValueError, match=message):
        LearningRateOptions(**options)
