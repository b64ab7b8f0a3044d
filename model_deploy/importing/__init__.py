"""Import hooks: their parts, delayed imports, and TensorFlow modules with TensorFlow 1's names."""

from model_deploy.importing import lazy_imports
from model_deploy.importing.lazy_imports import FinderBy, LoaderBy, finding_by
from model_deploy.importing.names import import_when_used
from model_deploy.importing.tf1_names import with_moved_names

__all__ = [
    "FinderBy",
    "LoaderBy",
    "finding_by",
    "import_when_used",
    "lazy_imports",
    "with_moved_names",
]
