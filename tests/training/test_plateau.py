"""A learning rate that follows evaluations falls at the steps that a reader can compute."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, train
from model_deploy.optimization import (
    LearningRateOptions,
    Plateau,
    build_learning_rate,
    noted_plateau,
)
from model_deploy.runs import read_metrics
from tests.goldens import LogicalDevices, cpu_config
from tests.training.halving import square

# (improvements of evaluations, patience, falls)
FALLS = {
    "none": ([True, True], 1, 0),
    "each": ([True, False, False], 1, 2),
    "patient": ([True, False, False, False, False, False], 2, 2),
    "an improvement begins anew": ([True, False, True, False, False], 2, 1),
    "never a number": ([False, False], 2, 1),
}


@pytest.mark.parametrize("case", FALLS)
def test_falls(case):
    """The rate falls after so many evaluations in a row, counted from the last fall."""
    improvements, patience, falls = FALLS[case]
    plateau = Plateau("", patience, 0.0)
    plateau.follow(improvements)
    assert plateau.falls == falls
    plateau.follow([])
    assert plateau.falls == 0


def _scores(values):
    return lambda path: {"auc": values[int(path.rpartition("-")[2])]}


def _run(train_dir, max_steps, evaluate, **options):
    """Trains at a rate from 0.5 that halves, down to 0.1; returns the rates of the steps."""
    settings = LearningRateOptions(
        learning_rate=0.5,
        learning_rate_decay_type="plateau",
        learning_rate_decay_factor=0.5,
        end_learning_rate=0.1,
        plateau_patience=2,
    )
    with tf.Graph().as_default():
        rate = build_learning_rate(settings, tf.train.get_or_create_global_step(), 10)
        config = LogicalDevices(num_clones=2)
        model = deploy(config, square, optimizer=tf.train.GradientDescentOptimizer(rate))
        settings = {"eval_every_n_steps": 1, "metric": "auc", "log_every_n_steps": 1, **options}
        settings |= {"evaluate": evaluate, "session_config": cpu_config(), "learning_rate": rate}
        train(model, train_dir, max_steps=max_steps, **settings)
        lines = [line for line in read_metrics(train_dir) if "learning_rate" in line]
    weight = tf.train.load_variable(tf.train.latest_checkpoint(str(train_dir)), "weight")
    return {line["step"]: line["learning_rate"] for line in lines}, float(weight)


# Step 2 is the best: falls after 4, 6 and 8, the last of them to 0.1 and not 1/16.
VALUES = [0, 0.1, 0.5, 0.4, 0.4, 0.3, 0.2, 0.2, 0.1, 0.1]
RATES = [0, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.1]


def test_the_rate(tmp_path, capsys):
    """It falls after two evaluations without improvement, and the steps are made at it."""
    rates, weight = _run(tmp_path, 9, _scores(VALUES))
    assert rates == pytest.approx(dict(enumerate(RATES[1:], 1)))
    expected = 1.0
    for rate in RATES[1:]:
        expected *= 1 - rate
    assert weight == pytest.approx(expected, rel=1e-5)
    assert "step 4: auc is on a plateau: the rate falls" in capsys.readouterr().err


@pytest.mark.one_mode
def test_going_on(tmp_path):
    """A run that is killed while it evaluates ends as one that is not, to the last bit."""
    rates, weight = _run(tmp_path / "whole", 9, _scores(VALUES))

    def killed(path):
        raise KeyboardInterrupt(path)

    for last_step in (3, 6):
        _run(tmp_path / "parts", last_step, _scores(VALUES))
        with pytest.raises(KeyboardInterrupt, match=f"ckpt-{last_step + 1}"):
            _run(tmp_path / "parts", 9, killed)
    found, found_weight = _run(tmp_path / "parts", 9, _scores(VALUES))
    # The lines of the steps at which it was killed are missing.
    assert found == {step: rate for step, rate in rates.items() if step not in (4, 7)}
    assert found_weight == weight


@pytest.mark.one_mode
def test_needs_evaluations(tmp_path):
    """Without evaluations there is nothing to follow."""
    with pytest.raises(ValueError, match="plateau must go with eval_every_n_steps, got None"):
        _run(tmp_path, 2, _scores(VALUES), eval_every_n_steps=None)


@pytest.mark.one_mode
def test_two_in_a_graph():
    """Of two such rates in one graph it is not clear which one the evaluations are for."""
    options = LearningRateOptions(learning_rate_decay_type="plateau")
    for _ in range(2):
        build_learning_rate(options, tf.train.get_or_create_global_step(), 10)
    with pytest.raises(ValueError, match="one learning rate of a graph must be a plateau, got 2"):
        noted_plateau()
