"""Exports SavedModels and frozen graphs of a trained classifier."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.exporting.serving import Serving, Signature
    from model_deploy.exporting.writing import (
        check_is_new,
        restore_to_export,
        write_frozen_graph,
        write_saved_model,
    )

__all__ = [
    "Serving",
    "Signature",
    "check_is_new",
    "restore_to_export",
    "write_frozen_graph",
    "write_saved_model",
]

import_when_used(__name__)
