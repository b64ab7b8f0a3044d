"""Settings of TF-Slim's scripts that no longer exist: their one valid value, and why."""

from typing import Any

from model_deploy.commands import Options, option

_QUANTIZATION = (
    "TensorFlow no longer rewrites graphs (tf.contrib.quantize), which is replaced by TensorFlow "
    "Lite; use export_image_classifier --output_tflite=FILE --tflite_type=int8"
)
# Field -> its only valid value, and the reason.
_GONE: dict[str, tuple[Any, str]] = {
    "quantize": (False, _QUANTIZATION),
    "quantize_delay": (-1, _QUANTIZATION),
    "is_training": (
        False,
        "an exported model predicts; to go on training, run train_image_classifier on the "
        "train_dir or with --checkpoint_path",
    ),
}


def gone(field: str) -> Any:
    """Returns the dataclass field for a setting that no longer exists."""
    return option(_GONE[field][0], "gone: see the message that it gives", topic="other")


def check_gone(options: Options) -> None:
    """Checks that settings that no longer exist have their only valid value.

    Raises:
      ValueError: naming the field, its valid value, the value received and the replacement.
    """
    for field, (only, reason) in _GONE.items():
        value = getattr(options, field, only)
        if value != only:
            raise ValueError(f"{field} must be {only}, got {value}: {reason}")
