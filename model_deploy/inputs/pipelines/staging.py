"""Batches that lie on the device of their clone before the step that takes them begins."""

from typing import Any

import tensorflow as tf

# Beside the one that is being copied: while a step runs, the batch of the next one is there.
_STAGED = 1


def is_apart(device: str) -> bool:
    """Whether a device has memory of its own, to which batches are copied."""
    return "GPU" in device.upper()


def staged_iterator(batches: Any, device: str, source_device: str) -> Any:
    """An initializable iterator on a device, whose batches come there beforehand.

    What is on its way there is part of the pipeline, as what waits on the CPU is: positions count
    the batches that steps have taken, so a batch that no step took is made again after a restart.

    Args:
      batches: a `tf.data.Dataset` of batches, on `source_device`.
      device: the device of the clone that takes them.
      source_device: a CPU of the same process, which makes them.
    """
    copy = tf.data.experimental.copy_to_device(device, source_device or "/device:CPU:0")
    # One is copied while the next one waits in memory that is pinned, see `gpus.session_config`.
    staged = batches.prefetch(1 + _STAGED).apply(copy).prefetch(_STAGED)
    with tf.compat.v1.device(device):
        return tf.compat.v1.data.make_initializable_iterator(staged)
