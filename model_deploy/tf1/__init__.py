"""Programs of TensorFlow 1: `python -m model_deploy.tf1 old_program.py` runs them as they are.

`%load_ext model_deploy.tf1` lets the cells of a notebook be such a program.

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


def load_ipython_extension(ipython: Any) -> None:
    """Called by `%load_ext model_deploy.tf1`: the cells that follow are a program of TensorFlow 1.

    Args:
      ipython: IPython's `InteractiveShell`.
    """
    importlib.import_module(f"{__name__}.notebook").load(ipython)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
