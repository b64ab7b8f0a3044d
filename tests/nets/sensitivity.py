"""Measures how far rounding can move the figures of each network's training step.

    python -m tests.nets.sensitivity [NAMES]

runs the step on weights and images with a little random noise and writes, per figure, how far it
moved at most, to `data/sensitivities.json`. `reference.training_bounds` makes the bounds of the
tests of it.

No processor adds in the order of another. Rounding noise is amplified by normalizations over a
batch of two, and where it decides otherwise about an activation next to zero, or two next to each
other under a max pooling, the gradient jumps. How far that goes is a property of network, weights
and images; noise in the weights of every layer shows it on any one processor.
"""

import functools
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

from tests.nets import reference
from tests.nets.comparison import as_facts, differences
from tests.nets.training_step import Step

# A float32 is rounded by up to 2^-24 of its value, and the roundings of a sum of n terms add up to
# about the square root of n of these: 2^7 for 16,000 terms, the order of the longest sums. Kernels
# add in blocks, so this is more than they differ by: as much noise as 2^-22 to 2^-18.
NOISE = 2.0**-17
# What next to no draw moves, no rounding moves: half of the draws decide otherwise about an
# activation that is nearer to zero than the noise.
DRAWS = 16


def noisy(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Returns float32 values times independent factors of up to `NOISE` from 1."""
    factors = random.random(values.shape, dtype=np.float32)
    factors *= np.float32(2 * NOISE)
    factors += np.float32(1 - NOISE)
    return values * factors


def measure(name: str, draws: int = DRAWS) -> dict[str, list[float]]:
    """Returns the largest difference of each training figure, by kind, over the draws of noise.

    Moving means and variances have none: the step does nothing with them but to update them.
    """
    facts = reference.load(name)["training_loss_and_update"]
    weights = functools.cache(lambda name, *shape: reference.weights(name, list(shape)))
    with Step(name) as step:
        plain = as_facts(step.run(weights=lambda name, shape: weights(name, *shape)), facts)
        moved = []
        for draw in range(draws):
            random = np.random.default_rng(draw)

            def disturbed(name, shape, random=random):
                value = weights(name, *shape)
                return value if "/moving_" in name else noisy(value, random)

            images = noisy(reference.images(facts["input_shape"]), random)
            moved.append(differences(step.run(images, disturbed), plain))
    return {
        kind: [max(draw[kind][of] for draw in moved) for of in moved[0][kind]] for kind in moved[0]
    }


def write(measured: dict[str, dict[str, list[float]]]) -> None:
    """Puts what was measured into the file, one network a line, two digits a number."""
    found = {**_written(), **measured}
    lines = []
    for name in sorted(found):
        rounded = {k: [float(f"{v:.1e}") for v in values] for k, values in found[name].items()}
        lines.append(f'"{name}": {json.dumps(rounded)}')
    reference.SENSITIVITIES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _written() -> dict[str, dict[str, list[float]]]:
    path = reference.SENSITIVITIES
    return json.loads(path.read_text()) if path.exists() else {}


def main(names: list[str]) -> None:
    """Measures and writes these networks, or all that have reference numbers."""
    unknown = sorted(set(names) - set(reference.names()))
    if unknown:
        raise ValueError(f"names must be of networks with reference numbers, got {unknown}")
    tf.disable_eager_execution()
    tf.get_logger().setLevel("ERROR")
    # As in conftest.py: building a network of a thousand variables takes a third of the time.
    tf.disable_tensor_equality()
    for name in names or reference.names():
        write({name: measure(name)})
        print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
