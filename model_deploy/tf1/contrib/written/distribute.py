"""`tf.contrib.distribute` on one machine: strategies of `tf.distribute`, with old arguments."""

# ruff: noqa: PLR0917 - the order of arguments is that of TensorFlow 1
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

_ALGORITHMS = {
    "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce,
    "nccl": tf.distribute.NcclAllReduce,
}


class MirroredStrategy(tf.distribute.MirroredStrategy):
    """`tf.distribute.MirroredStrategy`: each device has a copy of the variables.

    Args:
      devices: names of the devices; None for GPUs.
      num_gpus: how many GPUs of this machine; 0 for its CPU, None for all GPUs.
      num_gpus_per_worker: the same, of which one may be given.
      cross_device_ops: how gradients are summed, a `tf.distribute.CrossDeviceOps`; None for the
        choice of TensorFlow.
      auto_shard_dataset: means nothing on one machine.
      cross_tower_ops: `cross_device_ops`, under its first name.

    Raises:
      ValueError: if both names of an argument are given, or devices and their number; if the
        machine has fewer GPUs.
    """

    def __init__(
        self,
        devices: Sequence[str] | None = None,
        num_gpus: int | None = None,
        num_gpus_per_worker: int | None = None,
        cross_device_ops: Any = None,
        auto_shard_dataset: bool = False,
        cross_tower_ops: Any = None,
    ) -> None:
        del auto_shard_dataset
        number = _one_of(num_gpus=num_gpus, num_gpus_per_worker=num_gpus_per_worker)
        if number is not None:
            own = [f"/device:GPU:{i}" for i in range(number)] or ["/device:CPU:0"]
            devices = _one_of(devices=devices, num_gpus=own)
            found = len(tf.config.list_physical_devices("GPU"))
            if number > found:
                raise ValueError(
                    f"num_gpus must be at most {found}, as many as TensorFlow sees, got {number}"
                )
        ops = _one_of(cross_device_ops=cross_device_ops, cross_tower_ops=cross_tower_ops)
        super().__init__(devices, cross_device_ops=ops)


def AllReduceCrossDeviceOps(  # noqa: N802 - a class in TensorFlow 1
    all_reduce_alg: str = "nccl", num_packs: int = 1
) -> Any:
    """How a `MirroredStrategy` sums gradients: all-reduce, packed.

    Args:
      all_reduce_alg: `nccl` or `hierarchical_copy`.
      num_packs: in how many packs gradients travel; 0 for each alone.

    Returns:
      A `tf.distribute.CrossDeviceOps`.

    Raises:
      ValueError: for another algorithm.
    """
    if all_reduce_alg not in _ALGORITHMS:
        raise ValueError(
            f"all_reduce_alg must be one of {', '.join(_ALGORITHMS)}, got {all_reduce_alg!r}"
        )
    return _ALGORITHMS[all_reduce_alg](num_packs)


# Under their first names.
AllReduceCrossTowerOps = AllReduceCrossDeviceOps
ReductionToOneDeviceCrossDeviceOps = tf.distribute.ReductionToOneDevice
ReductionToOneDeviceCrossTowerOps = tf.distribute.ReductionToOneDevice
get_tower_context = tf.distribute.get_replica_context


def _one_of(**values: Any) -> Any:
    """The value that is given, of two that mean the same; None without."""
    given = {name: value for name, value in values.items() if value is not None}
    if len(given) > 1:
        raise ValueError(f"only one of {' and '.join(values)} must be given, got {given}")
    return next(iter(given.values()), None)
