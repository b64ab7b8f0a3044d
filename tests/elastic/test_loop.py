"""What `train_elastic` is given must be an elastic run."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from model_deploy.cluster import World, write_world
from model_deploy.elastic import ElasticModel, Member, train_elastic


def test_model_of_another_deployment(tmp_path):
    """A model that was not deployed for the part of the worker is refused."""
    path = tmp_path / "world.json"
    write_world(path, World(1, 1, {0: "127.0.0.1:1"}))
    config = DeploymentConfig(clone_on_cpu=True)

    def build(given):
        assert given.global_parts == 1

        def model_fn():
            weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
            tf.losses.add_loss(tf.square(weight))

        return ElasticModel(deploy(config, model_fn, optimizer=tf.train.AdamOptimizer()))

    with pytest.raises(ValueError, match=r"for the configuration that it was given, got a model"):
        train_elastic(build, config, tmp_path, member=Member(path, 0))
