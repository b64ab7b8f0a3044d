"""The reference numbers of the networks, their inputs and weights, and how close is equal.

`data/README.md` says how the numbers were made.
"""

import functools
import gzip
import json
import pathlib
import zlib
from typing import Any

import numpy as np

_DATA = pathlib.Path(__file__).parent / "data"

# Inference: the largest difference relative to the largest absolute value, and the same for an
# end point's mean and standard deviation. Two runs with different kernels differ by up to 4e-6.
INFERENCE_TOLERANCE = 1e-4
# Training: normalization over a batch of two amplifies rounding, by an amount that differs from
# network to network. Each file says how far a run with oneDNN kernels and two threads was from the
# reference run. The tests run that way, too, and are as far, to the two digits that the files have.
_NOISE_FACTOR = 1.5
_NOISE_FLOOR = 1e-6
# The noise of the auxiliary logits was not measured. One of their normalizations is over as few
# values as the batch has examples, two. Seen: 8 times the noise of the logits.
_AUXILIARY_FACTOR = 20.0
# Neither was that of a single variable's gradient: ten times the noise of all gradients together.
# In most files that is more than twenty times the noise of the logits; where it is less, by chance,
# they get that much, but no more than 0.001. It counts relative to the norm of all gradients, where
# an activation next to zero, or two next to each other under a max pooling, that decide otherwise
# are worth up to 2e-5; and relative to itself, where the first layers move by 8 percent.
_GRADIENT_FACTOR = 10.0
_GRADIENT_CHANCE = 1e-3
_GRADIENT_FLOOR = 1e-4
_GRADIENT_OWN = 0.2


def training_tolerance(measured_noise: dict[str, float], figure: str) -> float:
    """Returns the relative difference up to which a training figure is taken as equal."""
    return max(_NOISE_FACTOR * measured_noise[figure], _NOISE_FLOOR)


def auxiliary_tolerance(measured_noise: dict[str, float]) -> float:
    """Returns the same for auxiliary logits."""
    return _AUXILIARY_FACTOR * measured_noise["logits_relative_to_largest"]


def gradient_tolerance(measured_noise: dict[str, float], norm: float, global_norm: float) -> float:
    """Returns the difference up to which the norm of one variable's gradient is taken as equal.

    Args:
      measured_noise: of the training figures.
      norm: of the variable's gradient.
      global_norm: of all gradients together.
    """
    logits = measured_noise["logits_relative_to_largest"]
    noise = max(measured_noise["gradient_global_norm_relative"], logits)
    noise = max(noise, min(_GRADIENT_CHANCE, 20 * logits))
    return min(max(_GRADIENT_FACTOR * noise, _GRADIENT_FLOOR) * global_norm, _GRADIENT_OWN * norm)


def names() -> list[str]:
    """Returns the networks that have reference numbers."""
    return sorted(path.name.removesuffix(".json.gz") for path in _DATA.glob("*.json.gz"))


@functools.lru_cache(maxsize=4)
def load(name: str) -> dict[str, Any]:
    """Returns the reference numbers of one network."""
    return json.loads(gzip.decompress((_DATA / f"{name}.json.gz").read_bytes()))


def images(shape: list[int]) -> np.ndarray:
    """Returns the reference input of this shape: a fixed sequence in [-1, 1], as float32."""
    sequence = np.arange(np.prod(shape), dtype=np.int64) * 7919 % 2003
    return (sequence.astype(np.float32) / np.float32(1001.5) - np.float32(1.0)).reshape(shape)


def weights(name: str, shape: list[int]) -> np.ndarray:
    """Returns the reference value of the variable called `name`, as float32."""
    random = np.random.RandomState(zlib.crc32(name.encode("ascii")) & 0x7FFFFFFF)
    if name.endswith("moving_variance"):
        values = 1 + 0.1 * random.rand(*shape)
    elif name.endswith(("moving_mean", "beta", "biases", "bias")):
        values = 0.1 * random.randn(*shape)
    elif name.endswith("gamma"):
        values = 1 + 0.1 * random.randn(*shape)
    else:
        fan_in = np.prod(shape[:2] if name.endswith("depthwise_weights") else shape[:-1])
        values = random.randn(*shape)
        values *= np.sqrt(2 / fan_in)
    return values.astype(np.float32)


def relative_difference(actual: Any, expected: Any) -> float:
    """Returns the largest absolute difference over the largest absolute expected value."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    assert actual.shape == expected.shape
    difference = np.abs(actual - expected).max()
    return float(difference / max(np.abs(expected).max(), np.finfo(np.float32).tiny))
