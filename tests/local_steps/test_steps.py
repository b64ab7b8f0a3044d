"""Steps by themselves, and the outer step: beside one clone, and beside a few lines of NumPy."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig
from tests import clusters, harness, laws
from tests.goldens import GOLDENS, LogicalDevices

_TWO = {"num_replicas": 2, "all_reduce": True}
_RATE, _TARGETS = 0.25, (1.0, 4.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parts", "variable_kind"),
    laws.covering(
        [["slim_mlp", "embedding", "tied_embedding"], [1, 2], laws.KINDS], lambda *cell: True
    ),
    indirect=["variable_kind"],
)
def test_an_exchange_after_each_step_is_the_synchronous_step(name, parts, variable_kind):
    """With plain steps and plain averages replicas end where one clone ends."""
    del variable_kind
    config = LogicalDevices(num_clones=2, accumulate_steps=parts, local_steps=1, **_TWO)
    expected = harness.one_clone(GOLDENS[name])
    for run in harness.train_replicas(config, GOLDENS[name]):
        own = {key: value for key, value in run.values.items() if key in expected.values}
        harness.assert_close(own, expected.values)


def _model_of(target):
    """Two weights w with the loss sum((w - target)^2) / 2, whose gradient is w - target."""

    def model_fn():
        weights = [
            tf.get_variable(name, [2], initializer=tf.zeros_initializer()) for name in ("a", "b")
        ]
        tf.losses.add_loss(tf.add_n([tf.reduce_sum((w - target) ** 2) for w in weights]) / 2)

    return model_fn


class _Simulated:
    """One weight of both replicas, by algorithm 1 of DiLoCo and the overlap of Streaming DiLoCo.

    Attributes:
      values: the weight in each replica.
    """

    def __init__(self, shares, rate=1.0, momentum=0.0):
        self.values, self._shares = np.zeros(2), np.array(shares)
        self._rate, self._momentum = rate, momentum
        self._anchor = self._moved = 0.0
        self._sent = None

    def step(self):
        """A step of each replica."""
        self.values = self.values - _RATE * (self.values - np.array(_TARGETS))

    def begin(self):
        """Notes what is sent."""
        self._sent = self._anchor - self.values

    def end(self):
        """The outer step; changes since the begin stay."""
        noted = self._anchor - self._sent
        mean = np.sum(self._shares * self._sent)
        self._moved = self._momentum * self._moved + mean
        self._anchor -= self._rate * (mean + self._momentum * self._moved)
        self.values = self._anchor + (self.values - noted)


def _simulate(steps, offset, overlap, **settings):
    """The weight in each replica after 4 steps between begins, of which one is at `offset`."""
    found = _Simulated(**settings)
    for step in range(1, steps + 1):
        found.step()
        if step > overlap and (step - overlap - offset) % 4 == 0:
            found.end() if overlap else None
        if (step - offset) % 4 == 0:
            found.begin()
            if not overlap:
                found.end()
    return found.values


OUTER = {
    "plain": {},
    "Nesterov": {"outer_learning_rate": 0.7, "outer_momentum": 0.9},
    "in parts": {"outer_parts": 2, "outer_momentum": 0.5},
    "beside": {"outer_parts": 2, "outer_overlap": 3, "outer_momentum": 0.9},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "global_parts", "variable_kind"),
    laws.covering([OUTER, [None, 3], laws.KINDS], lambda *cell: True),
    indirect=["variable_kind"],
)
def test_the_outer_step_is_that_of_the_paper(name, global_parts, variable_kind):
    """Weights of both replicas are those of the algorithm; shares weigh where they differ."""
    del variable_kind
    outer = OUTER[name]
    if global_parts and not outer.get("outer_overlap"):
        outer = {**outer, "outer_overlap": 1}
    shares = (2 / 3, 1 / 3) if global_parts else (1 / 2, 1 / 2)
    config = LogicalDevices(local_steps=4, **_TWO, **outer)
    configs = [dataclasses.replace(config, replica_id=i) for i in range(2)]
    if global_parts:
        configs = [
            dataclasses.replace(
                each, global_parts=3, first_part=2 * i, accumulate_steps=2 - i, replica_id=i
            )
            for i, each in enumerate(configs)
        ]
    replicas = [
        harness.Replica(each, _model_of(target), lambda: harness.sgd(_RATE))
        for each, target in zip(configs, _TARGETS, strict=True)
    ]
    harness.train_together(replicas, clusters.workers(len(replicas)), steps=11)
    settings = {
        "shares": shares,
        "rate": config.outer_learning_rate,
        "momentum": config.outer_momentum,
    }
    for weight, offset in (("a", 0), ("b", 4 // config.outer_parts % 4)):
        expected = _simulate(11, offset, config.outer_overlap, **settings)
        for run, value in zip(replicas, expected, strict=True):
            np.testing.assert_allclose(run.values[weight], [value] * 2, atol=1e-5)
    assert np.any(replicas[0].values["a"] != replicas[1].values["a"])


@pytest.mark.slow
@pytest.mark.one_mode
def test_averages_of_batch_norms_are_averaged(variable_kind):
    """After an exchange all replicas have the mean of what they had before it."""
    del variable_kind
    golden, means = GOLDENS["batch_norm"], {}
    for steps in (2, 3):
        config = LogicalDevices(local_steps=3, **_TWO)
        runs = harness.train_replicas(config, golden, steps=steps)
        means[steps] = [run.values["norm/moving_mean"] for run in runs]
    halves = np.split(golden.features, 2)  # decay 0.9
    after = [
        0.9 * mean + 0.1 * half.mean(axis=0) for mean, half in zip(means[2], halves, strict=True)
    ]
    assert np.any(means[2][0] != means[2][1])
    for mean in means[3]:
        np.testing.assert_allclose(mean, np.mean(after, axis=0), rtol=1e-5)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"local_steps": 0}, "local_steps must be at least 1, got 0", id="none"),
        pytest.param({"outer_momentum": 0.9}, "must be 0.0 without local_steps", id="no steps"),
        pytest.param(
            {"local_steps": 2, "all_reduce": False}, "None without all_reduce=True, got 2", id="way"
        ),
        pytest.param(
            {"local_steps": 2, "outer_momentum": 1}, "from 0 to less than 1, got 1", id="momentum"
        ),
        pytest.param({"local_steps": 2, "outer_learning_rate": 0}, "more than 0, got 0", id="rate"),
        pytest.param(
            {"local_steps": 2, "outer_learning_rate": "1"}, "a number, got '1'", id="text"
        ),
        pytest.param(
            {"local_steps": 2, "outer_parts": 3}, "at most local_steps=2, got 3", id="parts"
        ),
        pytest.param(
            {"local_steps": 2, "outer_overlap": 2}, "less than local_steps=2, got 2", id="overlap"
        ),
        pytest.param(
            {"local_steps": 2, "precision": "float16"}, "loss_scale must be None", id="loss scale"
        ),
        pytest.param(
            {"local_steps": 2, "global_parts": 3}, "at least 1 with global_parts", id="elastic"
        ),
        pytest.param(
            {"local_steps": 2, "gradient_rank": 3}, "None with local_steps=2, got 3", id="rank"
        ),
        pytest.param(
            {"gradient_rank": 3, "all_reduce": False}, "None without all_reduce", id="servers"
        ),
    ],
)
def test_config_refuses(settings, message):
    """What does not go together is refused by name."""
    servers = {} if settings.get("all_reduce", True) else {"num_ps_tasks": 1}
    with pytest.raises(ValueError, match=message):
        DeploymentConfig(**{**_TWO, **servers, **settings})
