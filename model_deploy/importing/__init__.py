"""Imports of TensorFlow and tf-slim: some of them later, some with names of TensorFlow 1."""

from model_deploy.importing import lazy_imports
from model_deploy.importing.tf1_names import with_moved_names

__all__ = [
    "lazy_imports",
    "with_moved_names",
]
