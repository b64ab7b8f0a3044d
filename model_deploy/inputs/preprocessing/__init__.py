"""Preprocessing families, looked up by their own name or by the name of a network."""

from model_deploy.inputs.preprocessing import (  # noqa: F401 - they register themselves
    cifarnet,
    inception,
    lenet,
    vgg,
)
from model_deploy.inputs.preprocessing.families import (
    Preprocessing,
    get_preprocessing,
    preprocessing_names,
    register_preprocessing,
)

__all__ = [
    "Preprocessing",
    "get_preprocessing",
    "preprocessing_names",
    "register_preprocessing",
]
