"""Writes a model for TensorFlow Lite, in 32, 16 or 8 bits."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.exporting.formats import TYPES
from model_deploy.exporting.serving import Signature
from model_deploy.exporting.writing import staged


def write_tflite(
    session: Any,
    signature: Signature,
    output_file: str | os.PathLike[str],
    values: str = "float32",
    calibration: np.ndarray[Any, Any] | None = None,
) -> None:
    """Writes a file for TensorFlow Lite; its inputs and outputs are float32 in any case.

    Args:
      session: a session with the model's variables, which become constants.
      signature: the signature, of one input; its outputs that are strings are left out.
      output_file: a file that does not exist.
      values: one of `TYPES`.  In `int8` all is computed in 8 bits (Jacob et al.,
        https://arxiv.org/abs/1712.05877): the ranges of activations are those on `calibration`.
      calibration: for `int8`, real inputs, of shape [examples, ...].

    Raises:
      ValueError: if the file exists, `values` is none of `TYPES`, `calibration` is missing or
        without use, or an op cannot be converted.
    """
    if values not in TYPES:
        raise ValueError(f"values must be one of {', '.join(TYPES)}, got {values!r}")
    if (values == "int8") != (calibration is not None and len(calibration) > 0):
        shape = None if calibration is None else calibration.shape
        raise ValueError(f"calibration must have examples for int8 alone, got {shape} for {values}")
    [taken] = signature.inputs.values()
    converter = tf.lite.TFLiteConverter.from_session(
        session, [taken], list(signature.numbers.values())
    )
    if values != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if values == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if calibration is not None:
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.representative_dataset = lambda: _batches(calibration, taken.shape[0] or 1)
    with staged("output_tflite", output_file) as path:
        try:
            content = converter.convert()
        except Exception as error:  # of many kinds, and some of no common class
            lines = [line for line in str(error).splitlines() if line.strip()]
            raise ValueError(
                f"output_tflite must be of ops that TensorFlow Lite has, got {lines[:1]}"
            ) from error
        with open(path, "wb") as file:
            file.write(content)


def _batches(examples: np.ndarray[Any, Any], size: Any) -> Iterator[list[np.ndarray[Any, Any]]]:
    size = int(size)
    for first in range(0, len(examples) - size + 1, size):
        yield [examples[first : first + size].astype(np.float32)]
