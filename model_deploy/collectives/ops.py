"""TensorFlow's collective ops between the clones of all replicas, in one order everywhere."""

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import gpus
from model_deploy.collectives import packing
from model_deploy.collectives.pack_sizes import MOST_BYTES, packs_of
from model_deploy.config import DeploymentConfig

# So many ops are under way at a time: while one waits for a message, or adds, others use the link.
# On GPUs only one, as NCCL wants all processes to start its sums in the same order.
_LANES = 4

# The graph's instance keys in use.  Not a string: it does not go into checkpoints.
_KEYS = ("model_deploy", "instance_keys")

# One tensor for each clone of this process, in order.
PerClone = list[Any]


class Collectives:
    """A sequence of collective ops over a group of devices.

    No deadlock is possible: each op has an instance key of its own, made of its label
    so that all replicas agree, and on each device it starts after one before it: on CPUs the
    fourth before it, as several at a time fill the links better, and on GPUs the last.

    Args:
      devices: devices of this process that take part, all different.
      replica_id: index of this process.
      num_replicas: number of processes, each with as many devices.
      purpose: sets this sequence apart from others of the graph.
      made: for each device, or more, the ops that come before; gets those that are made.
      most_bytes: of a pack of several tensors.
    """

    def __init__(
        self,
        devices: Sequence[str],
        replica_id: int,
        num_replicas: int,
        purpose: str,
        made: list[list[Any]] | None = None,
        *,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._devices = list(devices)
        self._replica_id = replica_id
        self._num_replicas = num_replicas
        self._first_rank = replica_id * len(self._devices)
        self._purpose = purpose
        self._most_bytes = most_bytes
        self._made = [[] for _ in self._devices] if made is None else made
        types = {tf.DeviceSpec.from_string(device).device_type for device in devices}
        self._lanes = _LANES if types == {"CPU"} else 1
        self.size = num_replicas * len(self._devices)
        # A server remembers the devices of a group by its key, beyond a session.
        self._group_key = _hash(f"{num_replicas} x {[_local_part(d) for d in devices]}")

    def sum(self, tensors: PerClone, label: str, scale: float = 1.0) -> PerClone:
        """Each element's sum over the group, times `scale`.

        Args:
          tensors: vectors of one length, of floats.
          label: names the op, the same in every process.
          scale: 1 / `size` for the mean.

        Returns:
          A vector of that length and type for each clone.
        """
        if self._num_replicas > 1 and len(self._devices) > 1:
            return self._sum_inside_first(tensors, label, scale)
        sums = self._reduce(tensors, label, "Add")
        return sums if scale == 1 else self.on_devices(lambda i: sums[i] * scale)

    def _sum_inside_first(self, tensors: PerClone, label: str, scale: float) -> PerClone:
        """Sums the clones of a process, so that as much crosses its link as with one clone.

        A ring of all clones would send 2 (n k - 1) / (n k) of each vector over the links of n
        processes with k clones, in place of 2 (n - 1) / n.
        """
        firsts = self.first_clones()
        [total] = firsts.sum(firsts.on_devices(lambda _: tf.add_n(list(tensors))), label, scale)
        return self.on_devices(lambda _: tf.identity(total))

    def max(self, tensors: PerClone, label: str) -> PerClone:
        """Each element's largest value over the group.

        Args:
          tensors: vectors of one length, of floats or integers.
          label: names the op, the same in every process.

        Returns:
          A vector of that length and type for each clone.
        """
        return self._reduce(tensors, label, "Max")

    def gather(self, tensors: PerClone, label: str) -> PerClone:
        """The tensors of the whole group one behind the other, in the order of ranks.

        Args:
          tensors: tensors of one shape [rows, ...] with at least one row.
          label: names the op, the same in every process.

        Returns:
          For each clone a tensor [`size` * rows, ...].
        """
        return self._run(
            label,
            tensors,
            lambda i, key: tf.raw_ops.CollectiveGather(
                input=tensors[i], shape=[0], **self._group(key)
            ),
        )

    def exchange(self, tensors: PerClone, label: str) -> PerClone:
        """Hands row r of each tensor to rank r.

        Args:
          tensors: tensors of one shape [`size`, ...].
          label: names the op, the same in every process.

        Returns:
          For each clone a tensor of that shape: the rows that it got, in the order of ranks.
        """
        return self._run(
            f"{label}/exchange",
            tensors,
            lambda i, key: tf.raw_ops.CollectiveAllToAllV2(
                input=tensors[i], ordering_token=[], **self._group(key)
            ),
        )

    def first_clones(self) -> "Collectives":
        """The ops between the first clones of all processes, in one sequence with these ops."""
        return Collectives(
            self._devices[:1],
            self._replica_id,
            self._num_replicas,
            self._purpose,
            self._made,
            most_bytes=self._most_bytes,
        )

    def broadcast(self, tensors: PerClone, label: str, root: int = 0) -> PerClone:
        """The tensor of one device of the group, everywhere.

        Args:
          tensors: tensors of one static shape.
          label: names the op, the same in every process.
          root: rank of the device; 0 is the first one of the first process.

        Returns:
          A tensor of that shape for each clone.
        """

        def op(i: int, key: int) -> Any:
            settings = {"shape": tensors[i].shape, **self._group(key)}
            if self._first_rank + i == root:
                return tf.raw_ops.CollectiveBcastSend(input=tensors[i], **settings)
            return tf.raw_ops.CollectiveBcastRecv(T=tensors[i].dtype, **settings)

        return self._run(label, tensors, op)

    def in_packs(
        self,
        tensors: Sequence[Sequence[Any]],
        variables: Sequence[Any],
        collective: Callable[[PerClone, str], PerClone],
    ) -> list[list[Any]]:
        """Runs a collective op on many tensors, packed into few vectors.

        Packs go from the last variable to the first, as gradients become ready.

        Args:
          tensors: for each clone one tensor per variable, of its shape and dtype.
          variables: give names, shapes and dtypes.
          collective: takes one vector per clone and a label, and returns such vectors.

        Returns:
          Tensors as in `tensors`.
        """
        results: list[list[Any]] = [[None] * len(variables) for _ in tensors]
        kinds = [(v.dtype.base_dtype, v.shape) for v in variables]
        for positions in _plan(kinds, self._num_replicas, self._most_bytes):
            picked = [[of_clone[k] for k in positions] for of_clone in tensors]
            parts = self._run_pack(picked, [variables[k] for k in positions], collective)
            for of_clone, values in zip(results, parts, strict=True):
                for k, value in zip(positions, values, strict=True):
                    of_clone[k] = value
        return results

    def on_devices(self, make: Callable[[int], Any]) -> PerClone:
        """What `make` returns for each clone's index, made on the clone's device."""
        made = []
        for i, device in enumerate(self._devices):
            with tf.device(gpus.placing(device)):
                made.append(make(i))
        return made

    def done(self) -> Any:
        """An op that is done when all collective ops so far are, on all devices."""
        return tf.group(*(op for made in self._made for op in made[-self._lanes :]))

    def _run_pack(
        self,
        tensors: Sequence[Sequence[Any]],
        variables: Sequence[Any],
        collective: Callable[[PerClone, str], PerClone],
    ) -> PerClone:
        shapes = [variable.shape for variable in variables]
        label = str([f"{variable.name} {variable.shape}" for variable in variables])
        vectors = collective(self.on_devices(lambda i: packing.pack(tensors[i])), label)
        return self.on_devices(lambda i: packing.unpack(vectors[i], shapes))

    def _reduce(self, tensors: PerClone, label: str, merge: str) -> PerClone:
        def op(i: int, key: int) -> Any:
            return tf.raw_ops.CollectiveReduce(
                input=tensors[i],
                merge_op=merge,
                final_op="Id",
                subdiv_offsets=[0],
                **self._group(key),
            )

        return self._run(f"{label}/{merge}", tensors, op)

    def _group(self, key: int) -> dict[str, int]:
        """What sets an op apart from others and says who takes part in it."""
        return {
            "group_size": self.size,
            "group_key": self._group_key,
            "instance_key": key,
        }

    def _run(self, label: str, tensors: PerClone, op: Callable[[int, int], Any]) -> PerClone:
        if self.size == 1:
            return tensors
        key = _new_key(f"{self._purpose}/{label}")

        def after_others(i: int) -> Any:
            before = self._made[i][: -self._lanes + 1 or None]
            with tf.control_dependencies(before[-1:]):
                result = op(i, key)
            self._made[i].append(result.op)
            return result

        return self.on_devices(after_others)


def _plan(
    variables: Sequence[tuple[tf.DType, tf.TensorShape]], num_replicas: int, most_bytes: int
) -> list[list[int]]:
    """Which variables share a pack: those of one dtype that `packs_of` puts together."""
    of_dtype: dict[tf.DType, list[int]] = {}
    for k, (dtype, _) in enumerate(variables):
        of_dtype.setdefault(dtype, []).append(k)
    packs = []
    for dtype, positions in of_dtype.items():
        sizes = [variables[k][1].num_elements() * dtype.size for k in positions]
        of_dtype_packs = packs_of(sizes, num_replicas, most_bytes)
        packs += [[positions[i] for i in pack] for pack in of_dtype_packs]
    return sorted(packs, reverse=True)


def _new_key(label: str) -> int:
    """A key made of `label`, the same in every process, that the graph has not used yet.

    Servers remember type and shape of a key: other models get other keys.
    """
    used = tf.get_collection_ref(_KEYS)
    key = _hash(label)
    while key in used:
        key = _hash(f"{label}/{key}")
    used.append(key)
    return key


def _hash(label: str) -> int:
    return zlib.crc32(label.encode()) & 0x7FFFFFFF


def _local_part(device: str) -> str:
    return str(tf.DeviceSpec.from_string(device).replace(job=None, replica=None, task=None))


def collectives_of(config: DeploymentConfig, purpose: str) -> Collectives:
    """A sequence of collective ops between all clones of all replicas.

    Args:
      config: the deployment.
      purpose: sets it apart from others of the graph.
    """
    devices = [config.clone_device(i) for i in range(config.num_clones)]
    return Collectives(devices, config.replica_id, config.num_replicas, purpose)
