"""Runs with local steps go on as if they had not ended: each replica gets its own values back."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import train
from tests import clusters, harness
from tests.goldens import GOLDENS, LogicalDevices
from tests.local_steps.wide import wide_models


class _Values(tf.train.SessionRunHook):
    """Keeps the values of all variables at the end."""

    def __init__(self, replica):
        self._replica = replica
        self.values = {}

    def end(self, session):
        """Takes them."""
        self.values = session.run(self._replica.variables)


def run(config, models, folder, steps):
    """Trains all replicas up to a step, by `train`; returns the values of each."""

    def one(replica, target):
        hook = _Values(replica)
        with replica.graph.as_default():
            train(
                replica.model,
                folder,
                max_steps=steps,
                master=target,
                is_chief=replica.config.replica_id == 0,
                session_config=replica.proto,
                hooks=[hook],
            )
        return hook.values

    replicas = harness.replicas_of(config, models, harness.adam)
    return harness.together(one, replicas, clusters.workers(len(replicas)))


OUTER = {"outer_learning_rate": 0.7, "outer_momentum": 0.9}


LOCAL = {"local_steps": 4, **OUTER}


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("settings", "ends"),
    [
        pytest.param(
            {"outer_parts": 2, "outer_overlap": 2, **LOCAL}, [7, 8, 12], id="beside steps"
        ),
        pytest.param({"gradient_rank": 2, "num_clones": 2}, [4, 12], id="low rank"),
    ],
)
def test_going_on_is_not_having_ended(settings, ends, tmp_path):
    """A run of several sessions ends at the bits of one, with slots and errors of each replica."""
    config = LogicalDevices(num_replicas=2, all_reduce=True, **settings)
    models = wide_models if "gradient_rank" in settings else lambda: GOLDENS["batch_norm"]
    whole = run(config, models(), tmp_path / "whole", ends[-1])
    for end in ends:
        parts = run(config, models(), tmp_path / "parts", end)
    for expected, found in zip(whole, parts, strict=True):
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert any(np.any(whole[0][name] != whole[1][name]) for name in whole[0])
