"""Image classifiers built from options: network, dataset, losses, devices."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.classification.classifier import Classifier
    from model_deploy.classification.classifier_options import ClassifierOptions
    from model_deploy.classification.datasets import get_dataset, get_evaluation_dataset
    from model_deploy.classification.deployment_options import DeploymentOptions
    from model_deploy.classification.devices import (
        clone_batch_size,
        deployment_config,
    )
    from model_deploy.classification.gone_settings import gone
    from model_deploy.classification.losses import add_classification_losses
    from model_deploy.classification.updates import clones_in_update, way_to_train

__all__ = [
    "Classifier",
    "ClassifierOptions",
    "DeploymentOptions",
    "add_classification_losses",
    "clone_batch_size",
    "clones_in_update",
    "deployment_config",
    "get_dataset",
    "get_evaluation_dataset",
    "gone",
    "way_to_train",
]

import_when_used(__name__)
