"""Import hooks: delayed imports of packages, and TensorFlow modules with TensorFlow 1's names."""

from model_deploy.importing import lazy_imports
from model_deploy.importing.tf1_names import with_moved_names

__all__ = [
    "lazy_imports",
    "with_moved_names",
]
