"""TensorFlow's collective ops between the clones of all replicas, in the same order everywhere."""

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import gpus, internals
from model_deploy.collectives import packing
from model_deploy.collectives.carriers import carried_as
from model_deploy.collectives.pack_sizes import left_packs, packs_of
from model_deploy.config import DeploymentConfig

# How many collective ops run at a time on CPUs: while one waits or adds, others use the link.  On
# GPUs one at a time, as NCCL needs all processes to start its ops in the same order.
LANES = 4

# The graph's instance keys in use.  Not a string: it does not go into checkpoints.
_KEYS = ("model_deploy", "instance_keys")

# One tensor for each clone of this process, in order.
PerClone = list[Any]


class Collectives:
    """A sequence of collective ops over a group of devices.

    No deadlock is possible: each op has unique keys, computed from its label so that all
    replicas agree, and each op waits for an earlier one on its device: on GPUs the previous one,
    on CPUs the fourth before it, as several ops at a time fill the links better.

    Args:
      devices: devices of this process that take part, all different.
      replica_id: index of this process.
      num_replicas: number of processes, each with as many devices.
      purpose: distinguishes this sequence from others in the graph.
      made: for each device the list of earlier ops of the sequence, which new ops are added to.
      most_bytes: size limit of a pack of several tensors; see `packs_of`.
      lanes: how many ops run at a time on CPUs.
    """

    def __init__(
        self,
        devices: Sequence[str],
        replica_id: int,
        num_replicas: int,
        purpose: str,
        made: list[list[Any]] | None = None,
        *,
        most_bytes: int | None = None,
        lanes: int = LANES,
    ) -> None:
        self._devices = list(devices)
        self._replica_id = replica_id
        self._num_replicas = num_replicas
        self._first_rank = replica_id * len(self._devices)
        self._purpose = purpose
        self._most_bytes = most_bytes
        self._made = [[] for _ in self._devices] if made is None else made
        types = {tf.DeviceSpec.from_string(device).device_type for device in devices}
        self._lanes = lanes if types == {"CPU"} else 1
        self.size = num_replicas * len(self._devices)
        self._members = f"{num_replicas} x {[_local_part(d) for d in devices]}"

    def sum(self, tensors: PerClone, label: str, scale: float = 1.0) -> PerClone:
        """Sums each element over the group, times `scale`.

        Args:
          tensors: vectors of one length, of floats.
          label: names the op, the same in every process.
          scale: 1 / `size` for the mean.

        Returns:
          A vector of that length and type for each clone.
        """
        dtype = tensors[0].dtype.base_dtype
        sent = self.on_devices(lambda i: tf.cast(tensors[i], carried_as(dtype)))
        if self._num_replicas > 1 and len(self._devices) > 1:
            sums = self._sum_inside_first(sent, label, scale)
        else:
            sums = self._reduce(sent, label, "Add")
            sums = sums if scale == 1 else self.on_devices(lambda i: sums[i] * scale)
        return self.on_devices(lambda i: tf.cast(sums[i], dtype))

    def _sum_inside_first(self, tensors: PerClone, label: str, scale: float) -> PerClone:
        """Sums the clones inside each process first, then one clone per process.

        With n processes of k clones, a ring of all clones would send 2 (n k - 1) / (n k) of each
        vector over each link; a ring of the first clones sends 2 (n - 1) / n.
        """
        firsts = self.first_clones()
        [total] = firsts.sum(firsts.on_devices(lambda _: tf.add_n(list(tensors))), label, scale)
        return self.on_devices(lambda _: tf.identity(total))

    def max(self, tensors: PerClone, label: str) -> PerClone:
        """Returns each element's maximum over the group.

        Args:
          tensors: vectors of one length, of floats or integers.
          label: names the op, the same in every process.

        Returns:
          A vector of that length and type for each clone.
        """
        return self._reduce(tensors, label, "Max")

    def gather(self, tensors: PerClone, label: str, num_rows: PerClone | None = None) -> PerClone:
        """Concatenates the tensors of the whole group, in the order of ranks.

        Args:
          tensors: tensors of one shape [rows, ...] with at least one row.
          label: names the op, the same in every process.
          num_rows: where it may be another one in each run: the rows, an integer for each clone,
            the same everywhere.

        Returns:
          For each clone a tensor [`size` * rows, ...].
        """
        if _is_empty(tensors[0]):
            return self.on_devices(lambda i: tf.concat([tensors[i]] * self.size, axis=0))

        def op(tensor: Any, i: int, key: int) -> Any:
            if num_rows is None or self._num_replicas == 1:  # in a session by itself
                return tf.raw_ops.CollectiveGather(input=tensor, shape=[0], **self._group(key))
            group = self._group(key, num_rows[i])
            return tf.raw_ops.CollectiveGatherV2(input=tensor, ordering_token=[], **group)

        return self._run(label, tensors, op)

    def exchange(self, tensors: PerClone, label: str, num_rows: PerClone | None = None) -> PerClone:
        """Sends row r of each tensor to rank r.

        Args:
          tensors: tensors of one shape [`size`, ...].
          label: names the op, the same in every process.
          num_rows: where the second dimension may be another one in each run: its size, an integer
            for each clone, the same everywhere.

        Returns:
          For each clone a tensor of the same shape: the rows that it received, in order of ranks.
        """
        if _is_empty(tensors[0]):
            return tensors

        def op(tensor: Any, i: int, key: int) -> Any:
            group = self._group(key, None if num_rows is None else num_rows[i])
            return tf.raw_ops.CollectiveAllToAllV2(input=tensor, ordering_token=[], **group)

        return self._run(f"{label}/exchange", tensors, op)

    def together(self, results: Sequence[Any]) -> PerClone:
        """Returns results such that a run that needs that of one clone runs the ops of all.

        An op waits for those of all other devices: a run of one of them alone would never end.

        Args:
          results: what a collective op has given, a tensor for each clone.
        """

        def result_after_all(i: int) -> Any:
            with tf.control_dependencies([*results[:i], *results[i + 1 :]]):
                return tf.identity(results[i])

        return self.on_devices(result_after_all)

    def first_clones(self) -> "Collectives":
        """Returns the same sequence of ops, restricted to the first clone of each process."""
        return Collectives(
            self._devices[:1],
            self._replica_id,
            self._num_replicas,
            self._purpose,
            self._made,
            most_bytes=self._most_bytes,
            lanes=self._lanes,
        )

    def broadcast(self, tensors: PerClone, label: str, root: int = 0) -> PerClone:
        """Sends the tensor of one device of the group to all.

        Args:
          tensors: tensors of one static shape.
          label: names the op, the same in every process.
          root: rank of the device; 0 is the first one of the first process.

        Returns:
          A tensor of the same shape for each clone.
        """

        def op(tensor: Any, i: int, key: int) -> Any:
            settings = {"shape": tensor.shape, **self._group(key)}
            if self._first_rank + i == root:
                return tf.raw_ops.CollectiveBcastSend(input=tensor, **settings)
            return tf.raw_ops.CollectiveBcastRecv(T=tensor.dtype, **settings)

        return self._run(label, tensors, op)

    def in_packs(
        self,
        tensors: Sequence[Sequence[Any]],
        variables: Sequence[Any],
        collective: Callable[[PerClone, str], PerClone],
        left: Callable[[PerClone, str], PerClone] | None = None,
    ) -> list[list[Any]]:
        """Runs a collective op on many tensors, packed into a few vectors.

        Packs go from the last variable to the first, as gradients become ready.  Those of
        `left_packs` go from the first variable to the last, by another op if there is one.

        Args:
          tensors: for each clone one tensor per variable, of its shape and dtype.
          variables: the variables, for names, shapes and dtypes.
          collective: takes one vector per clone and a label, and returns one vector per clone.
          left: the same for what a rotated step leaves to the next one.

        Returns:
          The results, in the structure of `tensors`.
        """
        results: list[list[Any]] = [[None] * len(variables) for _ in tensors]
        kinds = [(v.dtype.base_dtype, v.shape) for v in variables]
        packs = _indices_of_packs(kinds, self._num_replicas, self._most_bytes)
        runs = [(positions, collective) for positions in packs]
        if left is not None:
            sizes = [sum(map(_bytes_of, (kinds[k] for k in pack))) for pack in packs]
            places = left_packs(sizes)
            runs = [run for i, run in enumerate(runs) if i not in places]
            runs += [(packs[i], left) for i in reversed(places)]
        for positions, run in runs:
            picked = [[of_clone[k] for k in positions] for of_clone in tensors]
            parts = self._run_pack(picked, [variables[k] for k in positions], run)
            for of_clone, values in zip(results, parts, strict=True):
                for k, value in zip(positions, values, strict=True):
                    of_clone[k] = value
        return results

    def on_devices(self, make: Callable[[int], Any]) -> PerClone:
        """Calls `make` for each clone's index on the clone's device; returns the results."""
        made = []
        for i, device in enumerate(self._devices):
            with tf.device(gpus.placing(device)):
                made.append(make(i))
        return made

    def done(self) -> Any:
        """Returns an op that is done when all collective ops so far are done everywhere."""
        return tf.group(*(op for made in self._made for op in made[-self._lanes :]))

    def _run_pack(
        self,
        tensors: Sequence[Sequence[Any]],
        variables: Sequence[Any],
        collective: Callable[[PerClone, str], PerClone],
    ) -> PerClone:
        """Packs each clone's tensors, runs the collective op, and unpacks the results."""
        shapes = [variable.shape for variable in variables]
        label = str([f"{variable.name} {variable.shape}" for variable in variables])
        vectors = collective(self.on_devices(lambda i: packing.pack(tensors[i])), label)
        return self.on_devices(lambda i: packing.unpack(vectors[i], shapes))

    def _reduce(self, tensors: PerClone, label: str, merge: str) -> PerClone:
        def op(tensor: Any, _: int, key: int) -> Any:
            how = {"input": tensor, "merge_op": merge, "final_op": "Id"}
            if self._num_replicas == 1 or tensor.shape.is_fully_defined():
                return tf.raw_ops.CollectiveReduce(subdiv_offsets=[0], **how, **self._group(key))
            group = self._group(key, tf.size(tensor))
            return tf.raw_ops.CollectiveReduceV2(ordering_token=[], **how, **group)

        return self._run(f"{label}/{merge}", tensors, op)

    def _group(self, key: int, size: Any = None) -> dict[str, Any]:
        """Returns the attributes that identify a collective op and its members.

        A server remembers the devices of a group by its key, and type and shape of an op by its
        instance key within the group, beyond a session.  Between processes each op is a group: see
        `internals.collective_steps`.  NCCL orders the ops of a process by their instance keys.

        Args:
          key: of the op.
          size: what sets shapes of this op apart from those of other runs, an integer that all
            processes know; the op must be of version 2 then.
        """
        if self._num_replicas == 1 and size is None:
            keys = {"group_key": _hash(self._members), "instance_key": key}
        else:
            own = 0 if size is None else tf.cast(size, tf.int32)
            keys = {"group_key": key, "instance_key": internals.INSTANCE_KEY + own}
        return {"group_size": self.size, **keys}

    def _run(self, label: str, tensors: PerClone, op: Callable[[Any, int, int], Any]) -> PerClone:
        """Makes a collective op per device by `op(tensor, clone index, its key)`, after others.

        Values of a type that the op does not have are sent in another one, see `carriers`.
        """
        if self.size == 1:
            return tensors
        # The number of rows may be known in one process and not in another.
        row_shape = None if tensors[0].shape.rank is None else tensors[0].shape.as_list()[1:]
        kind = f"{tensors[0].dtype.name}/{row_shape}"
        key = _new_key(f"{self._purpose}/{label}/{kind}/{self._members}")

        dtype = tensors[0].dtype.base_dtype

        def after_others(i: int) -> Any:
            before = self._made[i][: -self._lanes + 1 or None]
            sent = tf.cast(tensors[i], carried_as(dtype))
            with tf.control_dependencies(before[-1:]):
                result = op(sent, i, key)
            self._made[i].append(result.op)
            return tf.cast(result, dtype)

        return self.on_devices(after_others)


def _indices_of_packs(
    variables: Sequence[tuple[tf.DType, tf.TensorShape]], num_replicas: int, most_bytes: int | None
) -> list[list[int]]:
    """Groups variables, by index, into packs of one dtype, as `packs_of` sizes them."""
    of_dtype: dict[tf.DType, list[int]] = {}
    for k, (dtype, _) in enumerate(variables):
        of_dtype.setdefault(dtype, []).append(k)
    packs = []
    for positions in of_dtype.values():
        sizes = [_bytes_of(variables[k]) for k in positions]
        of_dtype_packs = packs_of(sizes, num_replicas, most_bytes)
        packs += [[positions[i] for i in pack] for pack in of_dtype_packs]
    return sorted(packs, reverse=True)


def _bytes_of(variable: tuple[tf.DType, tf.TensorShape]) -> int:
    dtype, shape = variable
    return int(shape.num_elements() * dtype.size)


def _is_empty(tensor: Any) -> bool:
    """Whether a tensor has no elements: TensorFlow's gather and exchange end the process by it."""
    return tensor.shape.rank is not None and 0 in tensor.shape.as_list()


def _new_key(label: str) -> int:
    """Returns a key that all processes compute from `label`, unused so far in the graph.

    Servers remember devices, dtype and shape by key, so other models must get other keys.
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


def collectives_of(config: DeploymentConfig, purpose: str, *, lanes: int = LANES) -> Collectives:
    """Returns a sequence of collective ops between all clones of all replicas.

    Args:
      config: the deployment.
      purpose: distinguishes the sequence from others in the graph.
      lanes: see `Collectives`.
    """
    devices = [config.clone_device(i) for i in range(config.num_clones)]
    return Collectives(devices, config.replica_id, config.num_replicas, purpose, lanes=lanes)
