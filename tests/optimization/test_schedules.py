"""Learning rates at chosen steps, by hand: all schedules, warm-up, scaling by the batch size."""

import math

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.optimization import (
    LearningRateOptions,
    build_learning_rate,
    learning_rate_note,
    scaled_learning_rate,
)

pytestmark = pytest.mark.one_mode

# At 10 steps an epoch; `schedule_epochs=4` is 40 steps.
STEPS = [0, 10, 20, 30, 40, 50]


def _rates(options, steps=STEPS, steps_per_epoch=10, **more):
    step = tf.placeholder(tf.int64, [])
    rate = build_learning_rate(options, step, steps_per_epoch, **more)
    assert rate.dtype == tf.float32
    with tf.Session() as session:
        return [float(session.run(rate, {step: at})) for at in steps]


def _options(kind, **more):
    settings = {"learning_rate": 0.8, "end_learning_rate": 0.0, "schedule_epochs": 4.0, **more}
    return LearningRateOptions(learning_rate_decay_type=kind, **settings)


HALF = math.sqrt(0.5)  # the cosine of 45 degrees
_STAIRS = {"learning_rate_decay_factor": 0.5, "num_epochs_per_decay": 2.0}
CASES = {
    "fixed": (_options("fixed"), [0.8] * 6),
    # Falls by half every 2 epochs, which are 20 steps.
    "stairs": (_options("exponential", **_STAIRS), [0.8, 0.8, 0.4, 0.4, 0.2, 0.2]),
    # A line from 0.8 to 0.2 over 20 steps, then level.
    "line": (
        _options("polynomial", num_epochs_per_decay=2.0, end_learning_rate=0.2),
        [0.8, 0.5, 0.2, 0.2, 0.2, 0.2],
    ),
    # Rises over 4 epochs, which are 40 steps: 0.8 * (step + 1) / 40, up to the stairs.
    "warm-up to stairs": (
        _options("exponential", warmup_epochs=4.0, **_STAIRS),
        [0.8 / 40, 0.8 * 11 / 40, 0.4, 0.4, 0.2, 0.2],
    ),
    "cosine": (_options("cosine"), [0.8, 0.4 * (1 + HALF), 0.4, 0.4 * (1 - HALF), 0.0, 0.0]),
    "floor": (
        _options("cosine", end_learning_rate=0.2),
        [0.8, 0.2 + 0.3 * (1 + HALF), 0.5, 0.2 + 0.3 * (1 - HALF), 0.2, 0.2],
    ),
    # Up to step 10, down to step 20, out to step 40.
    "one cycle": (
        _options("one_cycle", one_cycle_peak=0.25, one_cycle_divisor=8.0),
        [0.1, 0.8, 0.1, 0.05, 0.0, 0.0],
    ),
    # Up to step 16, where 10 steps are 5/8 of the way; down to step 32; out in 8 steps.
    "late peak": (
        _options("one_cycle", one_cycle_peak=0.4, one_cycle_divisor=8.0, end_learning_rate=0.01),
        [0.1, 0.1 + 0.7 * 5 / 8, 0.8 - 0.7 / 4, 0.8 - 0.7 * 7 / 8, 0.01, 0.01],
    ),
    "pieces": (
        _options("piecewise", learning_rate_boundaries="1,3.5", learning_rate_factors="0.5,0.1"),
        [0.8, 0.4, 0.4, 0.4, 0.08, 0.08],
    ),
    # 0.2 + 0.6 * (step + 1) / 20, up to the schedule.
    "warm-up": (
        _options("fixed", warmup_epochs=2.0, warmup_learning_rate=0.2),
        [0.2 + 0.6 / 20, 0.2 + 0.6 * 11 / 20, 0.8, 0.8, 0.8, 0.8],
    ),
    "warm-up to a cosine": (
        _options("cosine", warmup_epochs=2.0),
        [0.8 / 20, 0.8 * 11 / 20, 0.4, 0.4 * (1 - HALF), 0.0, 0.0],
    ),
    "warm-up to pieces": (
        _options(
            "piecewise",
            learning_rate_boundaries="3",
            learning_rate_factors="0.5",
            warmup_epochs=2.0,
        ),
        [0.8 / 20, 0.8 * 11 / 20, 0.8, 0.4, 0.4, 0.4],
    ),
    "warm-up to one cycle": (
        _options("one_cycle", one_cycle_peak=0.25, one_cycle_divisor=8.0, warmup_epochs=2.0),
        [0.8 / 20, 0.8 * 11 / 20, 0.1, 0.05, 0.0, 0.0],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rates(case):
    """The rates at chosen steps are those of the formula."""
    options, expected = CASES[case]
    assert _rates(options) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_epochs_that_are_no_whole_steps():
    """An epoch of 7.3 steps: the boundary of epoch 2 is at step 15, the one of epoch 3 at 22."""
    options = _options("piecewise", learning_rate_boundaries="2,3", learning_rate_factors="0.5,0.1")
    rates = _rates(options, [14, 15, 21, 22], 7.3)
    assert rates == pytest.approx([0.8, 0.4, 0.4, 0.08])
    stairs = _options("exponential", **_STAIRS)
    assert _rates(stairs, [14, 15, 29, 30], 7.3) == pytest.approx([0.8, 0.4, 0.4, 0.2])


@pytest.mark.parametrize("kind", ["cosine", "one_cycle", "exponential"])
def test_a_schedule_over_the_whole_run(kind):
    """With a quarter of the steps an epoch, for four clones, the rate of each epoch is the same.
    Without `schedule_epochs` it ends with the run; that is what 4 epochs are here.
    """
    rates = _rates(_options(kind))
    four_times = [4 * step for step in STEPS]
    assert _rates(_options(kind), four_times, 40) == pytest.approx(rates, rel=1e-6)
    if kind != "exponential":
        whole = _rates(_options(kind, schedule_epochs=None), max_steps=40)
        assert whole == rates == _rates(_options(kind), max_steps=7)


@pytest.mark.parametrize(
    ("scaling", "batch_size", "expected", "note"),
    [
        ("none", 1024, 0.8, "learning rate 0.8 (fixed)"),
        ("linear", 1024, 3.2, "learning rate 3.2 = 0.8 * 1024 / 256 (fixed)"),
        ("linear", 64, 0.2, "learning rate 0.2 = 0.8 * 64 / 256 (fixed)"),
        ("sqrt", 1024, 1.6, "learning rate 1.6 = 0.8 * sqrt(1024 / 256) (fixed)"),
        ("sqrt", 256, 0.8, "learning rate 0.8 = 0.8 * sqrt(256 / 256) (fixed)"),
    ],
)
def test_scaling(scaling, batch_size, expected, note):
    """Four times the batch is four times the rate, or twice; and the note says so."""
    options = _options("fixed", learning_rate_scaling=scaling)
    assert scaled_learning_rate(options, batch_size) == pytest.approx(expected)
    assert learning_rate_note(options, batch_size) == note
    rates = _rates(options, [0], update_batch_size=batch_size)
    assert rates == pytest.approx([expected], rel=1e-6)


def test_another_base():
    """The rate may be one for another batch size; the warm-up may start from that rate.

    That is the gradual warm-up of Goyal et al.: from 0.1 to 0.1 * 512 / 64 = 0.8.
    """
    options = _options(
        "fixed",
        learning_rate=0.1,
        learning_rate_scaling="linear",
        learning_rate_batch_size=64,
        warmup_epochs=1.0,
        warmup_learning_rate=0.1,
    )
    rates = _rates(options, [0, 4, 9, 10], update_batch_size=512)
    assert rates == pytest.approx([0.17, 0.45, 0.8, 0.8])
    assert learning_rate_note(options, 512) == (
        "learning rate 0.8 = 0.1 * 512 / 64 (fixed, from 0.1 in 1 epochs)"
    )


@pytest.mark.parametrize(
    "kind", ["fixed", "exponential", "polynomial", "cosine", "one_cycle", "piecewise"]
)
def test_every_schedule_is_scaled(kind):
    """Four times the rate is four times the rate at each step, where the end is 0."""
    pieces = {"learning_rate_boundaries": "1", "learning_rate_factors": "0.5"}
    more = {**(pieces if kind == "piecewise" else {}), "warmup_epochs": 1.5}
    plain = _rates(_options(kind, **more))
    scaled = _rates(_options(kind, learning_rate_scaling="linear", **more), update_batch_size=1024)
    assert scaled == pytest.approx([4 * rate for rate in plain], rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be more than 0, got 0.0"),
        (
            {"learning_rate_decay_type": "sine"},
            "one_cycle, piecewise, plateau, got 'sine'",
        ),
        ({"warmup_epochs": -1.0}, "warmup_epochs must be at least 0, got -1.0"),
        ({"num_epochs_per_decay": 0.0}, "num_epochs_per_decay must be more than 0, got 0.0"),
        ({"one_cycle_peak": 0.5}, "one_cycle_peak must be less than 0.5, got 0.5"),
        ({"plateau_patience": 0}, "plateau_patience must be at least 1, got 0"),
        ({"plateau_min_delta": -1.0}, "plateau_min_delta must be at least 0, got -1.0"),
        ({"one_cycle_divisor": 0.5}, "one_cycle_divisor must be at least 1, got 0.5"),
        ({"schedule_epochs": 0.0}, "schedule_epochs must be more than 0, got 0.0"),
        ({"warmup_learning_rate": -0.1}, "warmup_learning_rate must be at least 0, got -0.1"),
        ({"learning_rate_scaling": "log"}, "must be one of none, linear, sqrt, got 'log'"),
        ({"learning_rate_batch_size": 0}, "learning_rate_batch_size must be at least 1, got 0"),
        ({"learning_rate_boundaries": "30,x"}, "be numbers with commas between .*, got '30,x'"),
        ({"learning_rate_factors": "0.1,nan"}, "be numbers with commas between .*, got '0.1,nan'"),
        ({"learning_rate_boundaries": "30,20"}, "must be more than 0 and rise, got '30,20'"),
        ({"learning_rate_boundaries": "0,20"}, "must be more than 0 and rise, got '0,20'"),
        ({"learning_rate_factors": "0.1,2"}, "must be more than 0 and at most 1, got '0.1,2'"),
        (
            {"learning_rate_boundaries": "30,60", "learning_rate_factors": "0.1"},
            "as many as learning_rate_boundaries, got '0.1' for '30,60'",
        ),
        (
            {"learning_rate_boundaries": "30", "learning_rate_factors": "0.1"},
            "go with learning_rate_decay_type=piecewise, got '30' with exponential",
        ),
        (
            {"learning_rate_decay_type": "piecewise"},
            "go with learning_rate_decay_type=piecewise, got '' with piecewise",
        ),
    ],
)
def test_rejects(options, message):
    """A schedule that makes no sense names the setting."""
    with pytest.raises(ValueError, match=message) as error:
        LearningRateOptions(**options)
    assert any(name in str(error.value) for name in options)


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        (
            _options("cosine", schedule_epochs=None),
            {},
            "schedule_epochs or max_steps must be given for cosine, got neither",
        ),
        (
            _options("fixed", learning_rate_scaling="sqrt"),
            {},
            "update_batch_size must be given with learning_rate_scaling=sqrt, got None",
        ),
        (
            _options("cosine", end_learning_rate=0.9),
            {},
            "end_learning_rate must be at most that at the start of cosine, 0.8, got 0.9",
        ),
        (
            _options("plateau", end_learning_rate=0.9),
            {},
            "end_learning_rate must be at most that at the start of plateau, 0.8, got 0.9",
        ),
        (
            _options("one_cycle", end_learning_rate=0.1),
            {},
            "end_learning_rate must be at most that at the start of one_cycle, 0.08, got 0.1",
        ),
        (
            _options(
                "fixed", warmup_epochs=1.0, warmup_learning_rate=0.5, learning_rate_scaling="linear"
            ),
            {"update_batch_size": 128},
            "warmup_learning_rate must be at most the learning rate, 0.4, got 0.5",
        ),
        *(
            (_options("fixed"), {"steps_per_epoch": each}, f"must be more than 0, got {each}")
            for each in (0, -1.0)
        ),
    ],
)
def test_build_rejects(options, more, message):
    """What shows only with the steps or the batch size of a run names the setting, too."""
    with pytest.raises(ValueError, match=message):
        build_learning_rate(options, tf.constant(0), **{"steps_per_epoch": 10, **more})
