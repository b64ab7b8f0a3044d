"""`GradientFingerprints`: 64 bits of each clone's gradients, to tell which clone has others."""

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import gpus
from model_deploy.all_reduce import fingerprint
from model_deploy.clone_gradients import noted_gradients
from model_deploy.parts import Clone


class GradientFingerprints:
    """Fingerprints of the gradients of clones, before they are added up; adds ops to the graph.

    Args:
      clones: the clones, or their parts.

    Attributes:
      names: for each fingerprint the variable, clone and device, in words.
      values: the fingerprints, int64 [gradients].
    """

    def __init__(self, clones: Sequence[Clone]) -> None:
        self.names: list[str] = []
        found = []
        for clone, pairs in noted_gradients():
            if not any(clone is each for each in clones):
                continue
            for gradient, variable in pairs:
                if gradient is not None:
                    self.names.append(f"gradient of {variable.op.name} {_place(clone)}")
                    found.append(_of_gradient(gradient))
        self.values = tf.stack(found) if found else tf.zeros([0], tf.int64)


def _of_gradient(gradient: Any) -> Any:
    """Returns the fingerprint of a `Tensor` or of `IndexedSlices`, an int64 scalar."""
    if not isinstance(gradient, tf.IndexedSlices):
        return _on_device(gradient)
    return tf.bitwise.bitwise_xor(_on_device(gradient.values), _on_device(gradient.indices))


def _on_device(tensor: Any) -> Any:
    with tf.device(gpus.placing(tensor.device)):
        return fingerprint(tensor)


def _place(clone: Clone) -> str:
    part = clone.part
    if part is None:
        return f"on {clone.device}"
    number = f", part {part.index}" if part.config.accumulate_steps > 1 else ""
    return f"on {clone.device} (clone {part.clone_index}{number})"


def differing(names: Sequence[str], first: Any, second: Any) -> Iterator[str]:
    """Yields the names at whose places two arrays [names] differ."""
    for name, is_other in zip(names, (first != second).tolist(), strict=True):
        if is_other:
            yield name
