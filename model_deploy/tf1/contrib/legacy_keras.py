"""The cells and layers of TensorFlow 1, which tf-keras has: Keras 3 has no graph mode."""

import importlib
from typing import Any

KERAS = "tf_keras.api._v1.keras"
CELLS = f"{KERAS}.__internal__.legacy.rnn_cell"
LAYERS = f"{KERAS}.__internal__.legacy.layers"


_MODULES = {"cells": CELLS, "keras": KERAS, "layers": LAYERS}


def __getattr__(name: str) -> Any:
    """`cells`, `keras`, `layers`: the modules; tf-keras is imported when one is asked for."""
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
