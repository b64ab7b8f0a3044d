"""Writes a model as an ONNX file, by the package `tf2onnx`."""

import logging
import os
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.exporting.formats import check_onnx
from model_deploy.exporting.serving import Signature
from model_deploy.exporting.writing import staged

# Ops of ONNX as of this version, which onnxruntime has had since 1.14 (2023).
OPSET = 18
_OF_CONVERSION = (KeyError, ValueError, RuntimeError, NotImplementedError)


def write_onnx(
    session: Any, signature: Signature, output_file: str | os.PathLike[str], opset: int = OPSET
) -> None:
    """Writes an ONNX file whose inputs and outputs have the names of a signature.

    Args:
      session: a session with the model's variables, which become constants.
      signature: the signature; its outputs that are strings are left out.
      output_file: a file that does not exist.
      opset: version of ONNX's ops.

    Raises:
      ValueError: if the file exists, `tf2onnx` is not installed or does not know the opset, or
        ONNX has no like of an op.
    """
    check_onnx()
    # It logs ops that it cannot convert, and leaves them in the file: the file is checked.
    logging.getLogger("tf2onnx").setLevel(logging.CRITICAL)
    # Imported here, as they take seconds.
    from onnx import checker  # noqa: PLC0415
    from tf2onnx import constants, convert  # noqa: PLC0415

    versions = constants.OPSET_TO_IR_VERSION
    if opset not in versions:
        raise ValueError(f"opset must be {min(versions)} to {max(versions)}, got {opset}")
    outputs = signature.numbers
    names = {tensor.name: name for name, tensor in {**signature.inputs, **outputs}.items()}
    frozen = tf.graph_util.convert_variables_to_constants(
        session, session.graph.as_graph_def(), [tensor.op.name for tensor in outputs.values()]
    )
    with staged("output_onnx", output_file) as path:
        try:
            convert.from_graph_def(
                frozen,
                input_names=[tensor.name for tensor in signature.inputs.values()],
                output_names=[tensor.name for tensor in outputs.values()],
                opset=opset,
                tensors_to_rename=names,
                output_path=path,
            )
            checker.check_model(path)
        except (*_OF_CONVERSION, checker.ValidationError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ValueError(f"output_onnx must be of ops that ONNX has, got {reason}") from error
