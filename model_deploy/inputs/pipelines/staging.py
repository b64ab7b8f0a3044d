"""Prefetches batches to the device of a clone before the step that takes them."""

from typing import Any

import tensorflow as tf

# Batches on the device, besides the one being copied: the next step's, while a step runs.
_STAGED = 1


def is_apart(device: str) -> bool:
    """Whether a device has its own memory, to which batches must be copied."""
    return "GPU" in device.upper()


def staged_iterator(batches: Any, device: str, source_device: str) -> Any:
    """Returns an initializable iterator on a device, to which batches are prefetched.

    Prefetched batches do not count as taken: positions count batches that steps have taken, so a
    batch that no step took is made again after a restart.

    Args:
      batches: a `tf.data.Dataset` of batches, on `source_device`.
      device: the device of the clone that takes them.
      source_device: a CPU of the same process, which makes them.
    """
    copy = tf.data.experimental.copy_to_device(device, source_device or "/device:CPU:0")
    # One batch is copied while the next waits in pinned memory, see `gpus.session_config`.
    staged = batches.prefetch(1 + _STAGED).apply(copy).prefetch(_STAGED)
    with tf.compat.v1.device(device):
        return tf.compat.v1.data.make_initializable_iterator(staged)
