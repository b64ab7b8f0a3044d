"""Preprocessing families, looked up by their own name or by the name of a network.

Each family has a module with the functions that take seeds, and their steps, which take random
numbers as arguments.
"""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
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

import_when_used(__name__)
