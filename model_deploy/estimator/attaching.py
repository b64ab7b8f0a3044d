"""What the package's `Estimator` knows of deployments and of our clusters."""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import deployment, internals
from model_deploy.config import DeploymentConfig
from model_deploy.estimator import clusters
from model_deploy.estimator.deploying import deployed
from model_deploy.estimator.recording import NotDeployableError


def attach(training: Any) -> None:
    """Lets all estimators, canned ones too, train deployments and in clusters.

    Args:
      training: the package's module that has `train_and_evaluate`.
    """
    internals.replace_training(training.estimator_lib.Estimator, _with_deployment, _or_plain)
    clusters.attach(training)


def _with_deployment(estimator: Any) -> None:
    """Gives a new estimator what its deployment and its cluster need."""
    state = internals.EstimatorState(estimator)
    strategy = state.take_strategy()
    if isinstance(strategy, DeploymentConfig):
        state.model_fn = deployed(state.model_fn_of_clones(), strategy)
    else:
        state.set_strategy(strategy)
    clusters.join(estimator)
    found = getattr(state.model_fn, "deployed", None)
    if found is not None:
        cluster = clusters.cluster_of(estimator.config)
        config = clusters.config_of_cluster(found.config, cluster)
        state.model_fn = deployed(found.model_fn, config)
        state.session_config = deployment.session_config(config, state.session_config)


def _or_plain(estimator: Any, train: Callable[[], Any]) -> Any:
    """Trains; by Estimator alone where the `train_op` cannot be taken apart."""
    state = internals.EstimatorState(estimator)
    with internals.reading_where_variables_are():
        try:
            return train()
        except NotDeployableError as error:
            model_fn = state.model_fn.deployed.model_fn
            name = getattr(model_fn, "__name__", repr(model_fn))
            tf.logging.warning("%s is trained by Estimator alone: %s", name, error)
            state.model_fn = model_fn
            return train()
        finally:
            state.forget_inputs()
