"""The place of a process in a cluster, and the deployment that it gives."""

import json

import pytest

from model_deploy import DeploymentConfig, training

_TASKS = {"worker": ["127.0.0.1:1", "127.0.0.1:2"], "ps": ["127.0.0.1:3"]}
_SETTINGS = {"replicas_to_aggregate": 2, "rotate_steps": True}


def _place(**task):
    return training.join_cluster({"TF_CONFIG": json.dumps({"cluster": _TASKS, "task": task})})


@pytest.mark.one_mode
def test_settings_that_go_with_a_cluster():
    """A worker has them together with the cluster's numbers; a process alone has none of them."""
    alone = DeploymentConfig(num_clones=2, clone_on_cpu=True)
    found = _place(type="worker", index=1).deployment(alone, **_SETTINGS)
    numbers = {"replica_id": 1, "num_replicas": 2, "num_ps_tasks": 1}
    assert found == DeploymentConfig(num_clones=2, clone_on_cpu=True, **numbers, **_SETTINGS)
    assert training.Place().deployment(alone, **_SETTINGS) is alone


@pytest.mark.one_mode
def test_settings_that_do_not_fit_the_cluster():
    """The error says what the cluster has."""
    with pytest.raises(ValueError, match=r"from 1 to num_replicas=2, got 3"):
        _place(type="worker", index=0).deployment(DeploymentConfig(), replicas_to_aggregate=3)
