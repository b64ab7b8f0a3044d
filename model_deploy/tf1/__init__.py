"""Programs of TensorFlow 1: `python -m model_deploy.tf1 old_program.py` runs them as they are.

What they import is here, for those who change their imports instead: `dataset_factory`,
`preprocessing_factory` and `contrib`.
"""

import importlib
from typing import Any

_MODULES = {
    "contrib": "contrib",
    "dataset_factory": "datasets.dataset_factory",
    "preprocessing_factory": "preprocessing.preprocessing_factory",
}

__all__ = ["contrib", "dataset_factory", "preprocessing_factory"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
