"""`tf.contrib.distribute`: strategies with the arguments of TensorFlow 1."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import estimator
from model_deploy.tf1.contrib.written import distribute
from tests.estimator import models

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize(
    ("settings", "devices"),
    [
        ({"num_gpus": 0}, ["CPU:0"]),
        ({"num_gpus": 2}, ["GPU:0", "GPU:1"]),
        ({"num_gpus_per_worker": 1}, ["GPU:0"]),
        ({"devices": ["/gpu:3", "/gpu:5"]}, ["GPU:3", "GPU:5"]),
    ],
    ids=str,
)
def test_devices(settings, devices, monkeypatch):
    """A number of GPUs stands for the first ones of the machine, 0 for its CPU."""
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * 2)
    found = distribute.MirroredStrategy(**settings).extended.worker_devices
    assert [name.rpartition("device:")[2] for name in found] == devices


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: distribute.MirroredStrategy(num_gpus=1, num_gpus_per_worker=2),
            "only one of num_gpus and num_gpus_per_worker must be given, got .*1.*2",
        ),
        (
            lambda: distribute.MirroredStrategy(["/gpu:0"], num_gpus=1),
            "only one of devices and num_gpus must be given",
        ),
        (
            lambda: distribute.MirroredStrategy(num_gpus=99),
            "num_gpus must be at most .*, as many as TensorFlow sees, got 99",
        ),
        (
            lambda: distribute.AllReduceCrossDeviceOps("ring"),
            "all_reduce_alg must be one of hierarchical_copy, nccl, got 'ring'",
        ),
    ],
)
def test_refusals(make, message):
    """What contradicts itself, and algorithms that are none."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.filterwarnings("ignore:To make it possible to preserve tf.data options")
def test_an_estimator_trains(tmp_path):
    """An estimator with the strategy ends where one without ends; names of the ops are heeded."""
    ops = distribute.AllReduceCrossTowerOps("hierarchical_copy", num_packs=2)
    strategy = distribute.MirroredStrategy(num_gpus=0, cross_tower_ops=ops)
    assert isinstance(ops, tf.distribute.HierarchicalCopyAllReduce)
    model_fn = models.model_fn_of(models.STYLES["minimize"])

    def values(name, **settings):
        config = estimator.RunConfig(tf_random_seed=1, log_step_count_steps=None, **settings)
        params = {"rate": 0.1, "dense": True}
        trained = estimator.Estimator(model_fn, str(tmp_path / name), config, params)
        trained.train(models.input_fn(8), steps=4)
        return models.values_of(trained)

    expected, found = values("alone"), values("mirrored", train_distribute=strategy)
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
