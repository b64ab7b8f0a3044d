"""Preprocessing families, looked up by their own name or by the name of a network.

Each family has a module. Besides the functions that take seeds it has the steps that they are made
of, which take random numbers from wherever they come.
"""

from model_deploy.inputs.preprocessing import (
    cifarnet,
    images,
    inception,
    keras,
    lenet,
    padded_crop,
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
    "cifarnet",
    "get_preprocessing",
    "images",
    "inception",
    "keras",
    "lenet",
    "padded_crop",
    "preprocessing_names",
    "register_preprocessing",
    "vgg",
]
