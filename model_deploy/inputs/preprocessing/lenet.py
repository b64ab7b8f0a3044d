"""The `lenet` family: around the centre, values from -1 to 1, nothing random."""

from typing import Any

from model_deploy.inputs.preprocessing import families, images


def evaluate(batch: Any, height: int, width: int, *, use_grayscale: bool = False) -> Any:
    """uint8 [n, h, w, c] to float32 [n, height, width, c], (value - 128) / 128.

    Cut or padded around the centre; padded places are zeros before the scaling.
    """
    return (images.central_part(batch, height, width, use_grayscale=use_grayscale) - 128.0) / 128.0


@families.register_preprocessing("lenet", evaluate, batched=True)
def train(batch: Any, height: int, width: int, seeds: Any, *, use_grayscale: bool = False) -> Any:
    """The same as `evaluate`, float32 [n, height, width, c]: there is no augmentation.

    Args:
      batch: uint8 [n, h, w, c].
      height: of the result.
      width: of the result.
      seeds: int64 [n, 2], not used.
      use_grayscale: turns colours into one grey channel first.
    """
    del seeds
    return evaluate(batch, height, width, use_grayscale=use_grayscale)
