"""What TensorFlow says of names that are to go; seen in TensorFlow 2.16 to 2.21."""

from tensorflow.python.util import deprecation


def hide_deprecations() -> None:
    """Lets TensorFlow say nothing of deprecated names in this process.

    A program that was written for TensorFlow 1 is made of them.

    Wraps `deprecation._PRINT_DEPRECATION_WARNINGS`.
    """
    deprecation._PRINT_DEPRECATION_WARNINGS = False
