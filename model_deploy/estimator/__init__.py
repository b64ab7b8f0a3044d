"""`tf.estimator` of TensorFlow 1, which also trains by the ways of a `DeploymentConfig`.

    from model_deploy import DeploymentConfig, estimator

    model = estimator.Estimator(
        estimator.deployed(model_fn, DeploymentConfig(num_clones=2)), model_dir="run"
    )
    model.train(input_fn, max_steps=1000)

All names are those of the package `tensorflow_estimator` 2.15, which `pip install
'model_deploy[estimator]'` brings, and which is imported when one of them is first asked for; and
`deployed`.
"""

import functools
import importlib
from typing import Any

from model_deploy.estimator import package
from model_deploy.estimator.attaching import attach
from model_deploy.estimator.deploying import deployed
from model_deploy.estimator.recording import NotDeployableError

__all__ = ["NotDeployableError", "deployed", "load"]

_BOOSTED_TREES = (
    "BoostedTreesClassifier",
    "BoostedTreesEstimator",
    "BoostedTreesRegressor",
)


@functools.cache
def load() -> Any:
    """The package's module `estimator`, once it is imported and knows of deployments.

    Raises:
      ImportError: if the package is not installed.
    """
    names = package.load()
    attach(importlib.import_module(f"{package.PACKAGE}.python.estimator.training"))
    return names


def __getattr__(name: str) -> Any:
    """A name of `tf.estimator`, or `model_to_estimator`, which was in `tf.keras.estimator`.

    Raises:
      AttributeError: if it is none; for boosted trees, which the package dropped.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _BOOSTED_TREES:
        raise AttributeError(
            f"{name} is not in tensorflow_estimator 2.15, which dropped boosted trees: "
            "use sklearn.ensemble.HistGradientBoostingClassifier, or the package ydf"
        )
    if name == "model_to_estimator":
        load()
        return importlib.import_module(
            f"{package.PACKAGE}.python.estimator.keras_lib"
        ).model_to_estimator
    try:
        return getattr(load(), name)
    except AttributeError:
        raise AttributeError(f"tf.estimator has no {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(load()), "model_to_estimator"})
