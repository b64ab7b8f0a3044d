"""Files of other runtimes, as far as options name them; without TensorFlow."""

from model_deploy.checks import check_installed

# What weights of a TensorFlow Lite file are stored in; with int8 also what is computed in.
TYPES = ("float32", "float16", "int8")


def check_onnx() -> None:
    """Checks that `tf2onnx` is installed.

    Raises:
      ValueError: with the command of `pip`.
    """
    check_installed("output_onnx", "tf2onnx", "onnx")
