"""What the package's `Estimator` and `RunConfig` know of deployments and of our clusters."""

import functools
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import deployment
from model_deploy.config import DeploymentConfig
from model_deploy.estimator.deploying import config_of_cluster, deployed
from model_deploy.estimator.recording import NotDeployableError


def attach(estimator: Any, run_config: Any) -> None:
    """Lets all estimators, canned ones too, train deployments.

    Args:
      estimator: the package's class from which all others derive.
      run_config: its `RunConfig`.
    """
    estimator.__init__ = _with_deployment(estimator.__init__)
    estimator._train_model = _or_plain(estimator._train_model)
    name = "_init_distributed_setting_from_environment_var"
    setattr(run_config, name, _with_chief(getattr(run_config, name)))


def _with_deployment(original: Any) -> Any:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        config = self._train_distribution
        if isinstance(config, DeploymentConfig):
            self._train_distribution = None
            self._model_fn = deployed(self._model_fn, config)
        found = getattr(self._model_fn, "deployed", None)
        if found is None:
            return
        config = config_of_cluster(found.config, self._config)
        self._model_fn = deployed(found.model_fn, config)
        self._session_config = deployment.session_config(config, self._session_config)
        self._config = self._config.replace(session_config=self._session_config)

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


def _with_chief(original: Any) -> Any:
    @functools.wraps(original)
    def init(self: Any, tf_config: Mapping[str, Any]) -> Any:
        return original(self, with_chief(tf_config))

    return init


def with_chief(tf_config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A `TF_CONFIG` whose worker 0 is the chief, if it names none, as Estimator wants one.

    >>> with_chief({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})
    {'cluster': {'chief': ['a:1'], 'worker': ['b:1']}, 'task': {'type': 'worker', 'index': 0}}
    """
    cluster, task = dict(tf_config.get("cluster") or {}), dict(tf_config.get("task") or {})
    if not cluster.get("worker") or "chief" in cluster or "master" in cluster:
        return tf_config
    chief, *workers = cluster.pop("worker")
    others = {"worker": workers} if workers else {}
    if task.get("type") == "worker":
        index = int(task.get("index", 0))
        task = {**task, "type": "worker" if index else "chief", "index": max(index - 1, 0)}
    return {**tf_config, "cluster": {"chief": [chief], **others, **cluster}, "task": task}
