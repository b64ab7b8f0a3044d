"""`DeploymentConfig`: how many clones, replicas and parameter servers, and the device of each."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from model_deploy.checks import check_whole
from model_deploy.config_checks import check_config
from model_deploy.importing import lazy_imports
from model_deploy.settings import (
    ArithmeticSettings,
    CloneSettings,
    ElasticSettings,
    GpuSettings,
    WaySettings,
)

if TYPE_CHECKING:
    import tensorflow.compat.v1 as tf
else:
    # Commands check a deployment before they import TensorFlow, which takes seconds.
    tf = lazy_imports.Later("tensorflow.compat.v1")

DeviceFunction = Callable[[Any], str]


@dataclasses.dataclass(frozen=True)
class DeploymentConfig(
    ElasticSettings, GpuSettings, ArithmeticSettings, CloneSettings, WaySettings
):
    """Where one process places its clones, variables and inputs.

    One process, four GPUs: `DeploymentConfig(num_clones=4)`.  The same on each of
    three workers with two parameter servers:
    `DeploymentConfig(num_clones=4, replica_id=task, num_replicas=3, num_ps_tasks=2)`.

    >>> config = DeploymentConfig(num_clones=2)
    >>> config.clone_device(1), config.variables_device()
    ('/device:GPU:1', '/device:CPU:0')

    Attributes:
      num_clones: copies of the model in this process, one per device; at least 1.
      clone_on_cpu: put the clones on the CPU instead of on GPUs.
      replica_id: index of this worker, from 0; the chief is 0.
      num_replicas: number of workers; more than 1 needs `num_ps_tasks` or `all_reduce`.
      num_ps_tasks: number of parameter servers; 0 keeps the variables in this process.
      worker_job_name: job of the workers.
      ps_job_name: job of the parameter servers.
      other keywords: fields of the groups in `model_deploy.settings`, documented there:
        `WaySettings` (all_reduce, asynchronous, replicas_to_aggregate, ps_strategy, local_steps,
        outer_learning_rate, outer_momentum, outer_parts, outer_overlap, gradient_rank),
        `CloneSettings` (devices_per_clone, copy_clones, accumulate_steps), `ArithmeticSettings`
        (precision, loss_scale, xla, sync_batch_norm, wire_precision), `GpuSettings`
        (aggregate_on, gpu_memory_fraction, tf32, data_format), `ElasticSettings`
        (global_parts, first_part, worker_task).

    Raises:
      ValueError: for an invalid value or combination, naming the field, the rule and the value.
    """

    num_clones: int = 1
    clone_on_cpu: bool = False
    replica_id: int = 0
    num_replicas: int = 1
    num_ps_tasks: int = 0
    worker_job_name: str = "worker"
    ps_job_name: str = "ps"

    def __post_init__(self) -> None:
        if self.aggregate_on == "all_reduce":
            object.__setattr__(self, "all_reduce", True)
        check_config(self)

    @property
    def is_alone(self) -> bool:
        """Whether one process makes all steps, without parameter servers."""
        return self.num_replicas == 1 and self.num_ps_tasks == 0

    @property
    def ps_device(self) -> str:
        """Device prefix of the parameter servers; '' without parameter servers."""
        return f"/job:{self.ps_job_name}" if self.num_ps_tasks > 0 else ""

    @property
    def worker_device(self) -> str:
        """Device prefix of this worker; '' for a single process.

        With several replicas the prefix names the task: TensorFlow would place a plain
        `/job:worker` on task 0, for every replica.
        """
        if self.is_alone:
            return ""
        if self.worker_task is not None:
            return f"/job:{self.worker_job_name}/task:{self.worker_task}"
        task = f"/task:{self.replica_id}" if self.num_replicas > 1 else ""
        return f"/job:{self.worker_job_name}{task}"

    @property
    def wire_dtype(self) -> "tf.DType":
        """The dtype in which float32 values are sent between processes."""
        return tf.as_dtype(self.wire_precision)

    def caching_device(self) -> DeviceFunction | None:
        """Returns where variables are cached: on the device of the op that reads them.

        Returns:
          None without parameter servers; otherwise a device function for the
          `caching_device` of a variable scope.
        """
        return (lambda op: op.device or "") if self.num_ps_tasks > 0 else None

    def clone_device(self, clone_index: int) -> str:
        """Returns the device of a clone, the first device if the clone has several.

        Clones on the CPU share `CPU:0`, except with `all_reduce` or several devices per clone: then
        each device is a logical one, `CPU:<i>`, which sessions get by
        `tf.ConfigProto(device_count={"CPU": 4})` or by `all_reduce.session_config`.

        Raises:
          ValueError: if `clone_index` is not in [0, num_clones).
        """
        self._check_clone(clone_index)
        first = clone_index * self.devices_per_clone
        device = f"GPU:{first}"
        if self.clone_on_cpu:
            own = self.all_reduce or self.devices_per_clone > 1
            device = f"CPU:{first if own else 0}"
        return f"{self.worker_device}/device:{device}"

    def stage_device(self, clone_index: int, stage: int) -> str:
        """Returns the device of a stage of a clone, for `with tf.device(...)` in `model_fn`.

        >>> DeploymentConfig(num_clones=2, devices_per_clone=2).stage_device(1, 1)
        '/device:GPU:3'

        Args:
          clone_index: the clone; in `model_fn` use `current_clone()`.
          stage: from 0 on.

        Raises:
          ValueError: if `clone_index` is not in [0, num_clones), or `stage` not in
            [0, devices_per_clone).
        """
        first = tf.DeviceSpec.from_string(self.clone_device(clone_index))
        check_whole("stage", stage, 0)
        if stage >= self.devices_per_clone:
            raise ValueError(
                f"stage must be less than devices_per_clone={self.devices_per_clone}, got {stage}"
            )
        return str(first.replace(device_index=first.device_index + stage).to_string())

    def stage_devices(self, clone_index: int) -> list[str]:
        """Returns the devices of a clone's stages; an empty list for a clone with one device."""
        if self.devices_per_clone == 1:
            return []
        return [self.stage_device(clone_index, i) for i in range(self.devices_per_clone)]

    def clone_scope(self, clone_index: int) -> str:
        """Returns the name scope of a clone: `clone_<i>`, or '' for a single clone.

        Raises:
          ValueError: if `clone_index` is not in [0, num_clones).
        """
        self._check_clone(clone_index)
        return f"clone_{clone_index}" if self.num_clones > 1 else ""

    def part_scope(self, clone_index: int, part: int) -> str:
        """Returns the name scope of a part: `clone_<i>/part_<j>`; without parts that of the clone.

        Raises:
          ValueError: if `clone_index` is not in [0, num_clones), or `part` not in
            [0, accumulate_steps).
        """
        scope = self.clone_scope(clone_index)
        check_whole("part", part, 0)
        if part >= self.accumulate_steps:
            raise ValueError(
                f"part must be less than accumulate_steps={self.accumulate_steps}, got {part}"
            )
        if self.accumulate_steps == 1:
            return scope
        return f"{scope}/part_{part}" if scope else f"part_{part}"

    def places_of_parts(self) -> list[tuple[int, int]]:
        """Returns for each part of this process (clone index, index within the clone)."""
        return list(itertools.product(range(self.num_clones), range(self.accumulate_steps)))

    @property
    def batches_per_step(self) -> int:
        """How many batches this process takes per step: one for each part of each clone."""
        return self.num_clones * self.accumulate_steps

    @property
    def first_batch(self) -> int | None:
        """Number of this replica's first batch in the global batch; or None."""
        return None if self.global_parts is None else self.first_part * self.num_clones

    @property
    def global_clones(self) -> int:
        """How many batches all replicas together take per step."""
        if self.global_parts is not None:
            return self.global_parts * self.num_clones
        return self.batches_per_step * self.num_replicas

    @property
    def share(self) -> float:
        """The fraction of the global batch that this replica takes, from 0 to 1."""
        if self.global_parts is None:
            return 1 / self.num_replicas
        return self.accumulate_steps / self.global_parts

    @property
    def num_aggregated(self) -> int | None:
        """How many replicas make each update together on parameter servers; None if none do.

        With `global_parts` all replicas make each update together, as their parts differ.
        """
        if self.global_parts is not None and not self.all_reduce:
            return self.num_replicas
        return self.replicas_to_aggregate

    @property
    def clones_share_variables(self) -> bool:
        """Whether all clones of this process use the same variables, as opposed to copies."""
        return not self.all_reduce

    @property
    def batch_norm_clones(self) -> int:
        """The number of clones over which a batch norm takes its mean and variance."""
        common = self.all_reduce and self.local_steps is None
        num_replicas = self.num_replicas if common else 1
        return self.num_clones * num_replicas if self.sync_batch_norm else 1

    def optimizer_device(self) -> str:
        """Returns the device of the optimizer: the worker's CPU."""
        return f"{self.worker_device}/device:CPU:0"

    def sum_devices(self) -> list[str]:
        """Returns the GPUs that share the sums of dense gradients; [] if the CPU sums."""
        if self.aggregate_on != "gpu":
            return []
        return [self.clone_device(i) for i in range(self.num_clones)]

    def inputs_device(self) -> str:
        """Returns the device of the inputs: the worker's CPU."""
        return f"{self.worker_device}/device:CPU:0"

    def input_arguments(self) -> dict[str, Any]:
        """Returns keyword arguments of `inputs.train_batches` for this deployment.

        The input pipeline counts each part of a clone as a clone, as each part has its own batch.

        >>> arguments = DeploymentConfig(num_clones=2, accumulate_steps=3).input_arguments()
        >>> [arguments[name] for name in ("num_clones", "num_shards", "shard_index")]
        [6, 1, 0]
        """
        shards = {"num_shards": self.num_replicas, "shard_index": self.replica_id}
        if self.first_batch is not None:
            shards = {"first_clone": self.first_batch, "global_clones": self.global_clones}
        return {
            "num_clones": self.batches_per_step,
            **shards,
            "clone_devices": [self.clone_device(i) for i, _ in self.places_of_parts()],
            "inputs_device": self.inputs_device(),
            "variables_device": self.variables_device(),
        }

    def input_arguments_of_clones(self) -> list[dict[str, Any]]:
        """Returns `input_arguments` for one pipeline per clone, for asynchronous clones.

        Each clone has a shard of the dataset of its own.
        """
        shared, count = self.input_arguments(), self.accumulate_steps
        return [
            shared
            | {
                "num_clones": count,
                "num_shards": shared["num_shards"] * self.num_clones,
                "shard_index": shared["shard_index"] * self.num_clones + clone,
                "clone_devices": shared["clone_devices"][clone * count : (clone + 1) * count],
            }
            for clone in range(self.num_clones)
        ]

    def variables_device(self) -> str | DeviceFunction:
        """Returns the device of the variables, for `tf.device` and for slim variables.

        Returns:
          `/device:CPU:0` without parameter servers.  With them, a new device function that assigns
          a ps task to each new variable and leaves other ops alone.  With `all_reduce` the worker's
          prefix: each clone's variables are on the clone's device.
        """
        if self.all_reduce:
            return self.worker_device
        if self.num_ps_tasks == 0:
            return "/device:CPU:0"
        from model_deploy import placement  # noqa: PLC0415 - imports TensorFlow

        return placement.PsDeviceChooser(self.ps_device, self.num_ps_tasks, self.ps_strategy)

    def partitioner(self, min_bytes: int = 1 << 20) -> Callable[..., list[int]]:
        """Returns a partitioner that cuts big variables into one equal part per ps task.

        With `ps_strategy='balanced'` the fullest task holds at most 1.2 times the mean for the
        usual image networks.  Use the partitioner around the layers of a model:
        `with tf.variable_scope("", partitioner=config.partitioner()):`.
        Checkpoints hold the whole variables, under their usual names.

        Args:
          min_bytes: variables with fewer bytes are not cut.

        Raises:
          ValueError: if `min_bytes` is less than 1.
        """
        check_whole("min_bytes", min_bytes, 1)
        from model_deploy import placement  # noqa: PLC0415 - imports TensorFlow

        return placement.even_partitioner(max(1, self.num_ps_tasks), min_bytes)

    def _check_clone(self, clone_index: int) -> None:
        check_whole("clone_index", clone_index, 0)
        if clone_index >= self.num_clones:
            raise ValueError(
                f"clone_index must be less than num_clones={self.num_clones}, got {clone_index}"
            )
