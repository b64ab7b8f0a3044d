"""Exports SavedModels, frozen graphs, ONNX and TensorFlow Lite files of a trained classifier."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.exporting.formats import TYPES, check_onnx
    from model_deploy.exporting.lite import write_tflite
    from model_deploy.exporting.onnx_files import write_onnx
    from model_deploy.exporting.serving import Serving, Signature
    from model_deploy.exporting.writing import (
        check_is_new,
        restore_to_export,
        write_frozen_graph,
        write_saved_model,
    )

__all__ = [
    "TYPES",
    "Serving",
    "Signature",
    "check_is_new",
    "check_onnx",
    "restore_to_export",
    "write_frozen_graph",
    "write_onnx",
    "write_saved_model",
    "write_tflite",
]

import_when_used(__name__)
