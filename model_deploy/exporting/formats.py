"""Files of other runtimes, as far as options name them; without TensorFlow."""

import importlib.util

# What weights of a TensorFlow Lite file are stored in; with int8 also what is computed in.
TYPES = ("float32", "float16", "int8")


def check_onnx() -> None:
    """Checks that `tf2onnx` is installed.

    Raises:
      ValueError: with the command of `pip`.
    """
    if importlib.util.find_spec("tf2onnx") is None:
        raise ValueError(
            "output_onnx must have the package tf2onnx, got none: pip install 'model_deploy[onnx]'"
        )
