"""What the package's `Estimator` knows of deployments and of our clusters."""

import functools
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import deployment
from model_deploy.config import DeploymentConfig
from model_deploy.estimator import clusters
from model_deploy.estimator.deploying import deployed
from model_deploy.estimator.recording import NotDeployableError


def attach(estimator: Any) -> None:
    """Lets all estimators, canned ones too, train deployments and in clusters.

    Args:
      estimator: the package's class from which all others derive.
    """
    estimator.__init__ = _with_deployment(estimator.__init__)
    estimator._train_model = _or_plain(estimator._train_model)


def _with_deployment(original: Any) -> Any:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        config = self._train_distribution
        if isinstance(config, DeploymentConfig):
            self._train_distribution = None
            self._model_fn = deployed(self._model_fn, config)
        clusters.join(self)
        found = getattr(self._model_fn, "deployed", None)
        if found is None:
            return
        config = clusters.config_of_cluster(found.config, clusters.cluster_of(self._config))
        self._model_fn = deployed(found.model_fn, config)
        self._session_config = deployment.session_config(config, self._session_config)

    return init


def _or_plain(original: Any) -> Any:
    @functools.wraps(original)
    def train_model(self: Any, *args: Any) -> Any:
        try:
            return original(self, *args)
        except NotDeployableError as error:
            found = self._model_fn.deployed
            name = getattr(found.model_fn, "__name__", repr(found.model_fn))
            tf.logging.warning("%s is trained by Estimator alone: %s", name, error)
            self._model_fn = found.model_fn
            return original(self, *args)

    return train_model
