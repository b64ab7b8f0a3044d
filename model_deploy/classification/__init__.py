"""Image classifiers built from options: network, dataset, losses, devices."""

from model_deploy.classification.classifier import Classifier, ClassifierOptions
from model_deploy.classification.datasets import get_dataset, get_evaluation_dataset
from model_deploy.classification.devices import (
    DeploymentOptions,
    clone_batch_size,
    clones_in_update,
    deployment_config,
    way_to_train,
)
from model_deploy.classification.gone import gone
from model_deploy.classification.losses import add_classification_losses

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
