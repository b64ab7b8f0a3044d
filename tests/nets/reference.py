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
SENSITIVITIES = _DATA / "sensitivities.json"

# Inference: the largest difference relative to the largest absolute value, and the same for an
# end point's mean and standard deviation. Nothing in inference amplifies rounding: runs with
# different kernels differ by up to 1e-5.
INFERENCE_TOLERANCE = 1e-4
# Training: a figure may be this many times as far from the reference as the noise of `sensitivity`
# has moved it.
_NOISE_FACTOR = 3.0
# A figure that this noise does not move has some roundings of its own, of 2^-24 each: it is
# averaged or scaled, stored as float32 and written with eight digits. Sixteen of them.
_ROUNDINGS = 2.0**-20


def training_bounds(name: str) -> dict[str, list[float]]:
    """Returns how far each training figure of a network may be from the reference, by kind.

    Differences are those of `comparison.differences`, in that order.
    """
    return {
        kind: [max(_NOISE_FACTOR * moved, _ROUNDINGS) for moved in values]
        for kind, values in sensitivities()[name].items()
    }


@functools.cache
def sensitivities() -> dict[str, dict[str, list[float]]]:
    """Returns what the command of `sensitivity` wrote, by network and kind of figure."""
    return json.loads(SENSITIVITIES.read_text())


@functools.cache
def names() -> list[str]:
    """Returns the networks that have reference numbers."""
    return sorted(path.name.removesuffix(".json.gz") for path in _DATA.glob("*.json.gz"))


@functools.lru_cache(maxsize=4)
def load(name: str) -> dict[str, Any]:
    """Returns the reference numbers of one network."""
    return json.loads(gzip.decompress((_DATA / f"{name}.json.gz").read_bytes()))


def op_names(name: str, kind: str) -> dict[str, Any]:
    """Returns what `graphs.op_names` is to be of one network.

    Programs find ops by name: in frozen graphs, and as features of other networks.

    Args:
      name: of the network.
      kind: `classes` or `features`, for `num_classes=None`; videos have no features.
    """
    names = all_op_names()[name][kind]
    return {**names, "end_points": [list(item) for item in names["end_points"].items()]}


@functools.cache
def all_op_names() -> dict[str, dict[str, dict[str, Any]]]:
    """Returns the names of ops of the original networks: by network, kind and end point."""
    return json.loads(gzip.decompress((_DATA / "slim" / "op_names.json.gz").read_bytes()))


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
        values = np.empty(np.prod(shape), np.float32)
        for part in np.array_split(values, 1 + len(values) // 2**22):  # few doubles at a time
            part[:] = random.randn(len(part)) * np.sqrt(2 / fan_in)
        values = values.reshape(shape)
    return values.astype(np.float32, copy=False)


def relative_difference(actual: Any, expected: Any) -> float:
    """Returns the largest absolute difference over the largest absolute expected value."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    assert actual.shape == expected.shape
    difference = np.abs(actual - expected).max()
    return float(difference / max(np.abs(expected).max(), np.finfo(np.float32).tiny))
