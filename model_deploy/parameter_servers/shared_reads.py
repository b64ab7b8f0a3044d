"""One transfer of each variable between its parameter server and a worker, per step and way."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals, placement
from model_deploy.collectives import packing
from model_deploy.config import DeploymentConfig
from model_deploy.gradients import GradientAndVariable

# That much is on its way from a parameter server before it hears of what has arrived: what a link
# of 10 Gbit/s sends in a millisecond.
_UNDER_WAY = 1 << 20


def share_reads(config: DeploymentConfig, ops: Sequence[Any]) -> list[Any]:
    """Lets ops that read the same variable on a parameter server use one read of it.

    TensorFlow reads a resource variable anew for each use, L2 regularization and each clone
    included, and moves the whole value for each; and a reference variable for each device
    that uses it.  With this the value comes to the worker's CPU once, from where all get it.

    Reads that may have to see another value stay as they are: those under control
    dependencies, such as after an assignment, and those in conditions and loops.  So do
    uses on the parameter server.  Does nothing without parameter servers.

    Args:
      config: the deployment.
      ops: the operations that may share, in the order in which they were made; no other ones
        are changed.

    Returns:
      The shared values, each of its variable's shape and dtype, on the worker's CPU, for
      `pack_reads`.
    """
    if config.num_ps_tasks == 0:
        return []
    values = []
    changeable = set(ops)
    for variable, reads in _reads_by_variable(ops).items():
        uses = [
            (index, op)
            for read in reads
            for index, op in uses_of(read.outputs[0])
            if op in changeable and not _is_remote(config, op.device)
        ]
        if uses:
            values.append(_read_once(variable, reads[0].outputs[0], config.inputs_device()))
            for index, op in uses:
                internals.replace_input(op, index, values[-1])
    return values


def uses_of(tensor: Any) -> Iterator[tuple[int, Any]]:
    """Every op that takes a tensor, of any shape, with the number of the input that it is."""
    for op in dict.fromkeys(tensor.consumers()):
        for index, taken in enumerate(op.inputs):
            if taken is tensor:
                yield index, op


def pack_reads(values: Sequence[Any]) -> None:
    """Lets small ones of the shared values come in one pack, and the others one after the other.

    To be called once gradients are computed, which are those of each variable by itself.

    Args:
      values: what `share_reads` returned, tensors of their variables' shapes.
    """
    small = [value for value in values if packing.is_small(value)]
    reads = [value.op.inputs[0] for value in small]
    with tf.control_dependencies(None):
        for source, indices in _by_device(reads).items():
            parts = packing.move_packed([reads[i] for i in indices], source, small[0].device)
            for i, part in zip(indices, parts, strict=True):
                internals.replace_input(small[i].op, 0, part)
    order_reads([(value.op.inputs[0], value) for value in values if not packing.is_small(value)])


def order_reads(reads: Sequence[tuple[Any, Any]]) -> None:
    """Lets variables come from each parameter server in the order in which they are needed.

    All at once would share the link and come together at the end: the forward pass would wait for
    the last one to begin with the first.  So a read waits for another one, before it, to have
    arrived, and `_UNDER_WAY` bytes or more are between them, so that the link is never idle.

    Args:
      reads: of each variable in that order its value on the parameter server, and what has
        arrived of it on the worker; tensors of the variable's shape, of reads made for this.
    """
    by_server: dict[str, list[tuple[Any, Any]]] = {}
    for read, arrived in reads:
        by_server.setdefault(read.device, []).append((read, arrived))
    for in_order in by_server.values():
        sizes = [placement.tensor_bytes(r.shape, r.dtype) or _UNDER_WAY for r, _ in in_order]
        first = 0
        for k in range(2, len(in_order)):
            while first < k - 2 and sum(sizes[first + 2 : k]) >= _UNDER_WAY:
                first += 1
            if sum(sizes[first + 1 : k]) >= _UNDER_WAY:
                read, (_, arrived) = in_order[k][0], in_order[first]
                internals.add_control_inputs(read.op, [arrived.op])


def pack_gradients(
    config: DeploymentConfig,
    gradients: Sequence[GradientAndVariable],
    after: Any = None,
    *,
    rows_go: bool = True,
) -> list[GradientAndVariable]:
    """Lets the gradients of small variables go to each parameter server in one pack.

    They and the others, if they are of float32, go in `config.wire_dtype`.

    Args:
      config: the deployment; without parameter servers nothing is changed.
      gradients: `(gradient, variable)` pairs; a gradient has the variable's shape, is an
        `IndexedSlices` over its rows, or None.
      after: a tensor of the worker, of any shape.  No gradient leaves before it is computed, so
        that what gets them need not wait for it, which would take a message to each parameter
        server.
      rows_go: whether rows of sparse gradients go to the parameter servers; else the caller
        moves them.

    Returns:
      The same values, of the same shapes, those that were packed or rounded beside their
      variables.
    """
    packed = list(gradients)
    if config.num_ps_tasks == 0:
        return packed
    if after is not None:
        packed = [(_once_done(after, gradient), variable) for gradient, variable in gradients]
    small = [
        i
        for i, (gradient, _) in enumerate(packed)
        if tf.is_tensor(gradient)
        and not isinstance(gradient, tf.IndexedSlices)
        and packing.is_small(gradient)
    ]
    for device, places in _by_device([packed[i][1] for i in small]).items():
        moved = [packed[small[place]] for place in places]
        dtype = config.wire_dtype if _is_remote(config, device) else tf.float32
        parts = packing.move_packed([g for g, _ in moved], config.optimizer_device(), device, dtype)
        for place, part, (_, variable) in zip(places, parts, moved, strict=True):
            packed[small[place]] = (part, variable)
    return [(_go(config, g, variable, rows_go), variable) for g, variable in packed]


def _go(config: DeploymentConfig, gradient: Any, variable: Any, rows_go: bool) -> Any:
    """The gradient on its way to its variable, unless it is there."""
    if isinstance(gradient, tf.IndexedSlices):
        if not rows_go:
            return gradient
        values = _go(config, gradient.values, variable, rows_go)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    if (
        gradient is None
        or _is_remote(config, gradient.device)
        or not _is_remote(config, variable.device)
    ):
        return gradient
    return packing.move(gradient, gradient.device, variable.device, config.wire_dtype)


def _is_remote(config: DeploymentConfig, device: str) -> bool:
    return bool(tf.DeviceSpec.from_string(device).job == config.ps_job_name)


def _once_done(after: Any, gradient: Any) -> Any:
    """The same gradient on the same device, but not before `after`."""
    if isinstance(gradient, tf.IndexedSlices):
        values = _once_done(after, gradient.values)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    with tf.device(gradient.device), tf.control_dependencies([after]):
        return tf.identity(gradient)


def _by_device(items: Sequence[Any]) -> dict[str, list[int]]:
    """Places in `items` by device; of devices with one item only there is nothing to pack."""
    places: dict[str, list[int]] = {}
    for i, item in enumerate(items):
        places.setdefault(item.device, []).append(i)
    return {device: found for device, found in places.items() if len(found) > 1}


def _reads_by_variable(ops: Iterable[Any]) -> dict[Any, list[Any]]:
    """The reads among `ops` whose moment does not matter, by the op of their variable."""
    found: dict[Any, list[Any]] = {}
    for op in ops:
        # Of a reference variable a read is an identity.
        if op.type not in ("ReadVariableOp", "Identity") or op.control_inputs:
            continue
        variable = op.inputs[0].op
        if placement.is_variable_op(variable) and not internals.in_old_control_flow(op):
            found.setdefault(variable, []).append(op)
    return found


def _read_once(variable: Any, read: Any, device: str) -> Any:
    """A new read of a variable, on `device`: the reads of a clone may be copied for others."""
    graph = tf.get_default_graph()
    with tf.control_dependencies(None), tf.name_scope(f"{variable.name}/shared/"):
        with graph.colocate_with(variable, ignore_existing=True):
            if read.op.type == "ReadVariableOp":
                value = tf.raw_ops.ReadVariableOp(
                    resource=variable.outputs[0], dtype=read.dtype, name="read"
                )
                value.set_shape(read.shape)
            else:
                value = tf.identity(variable.outputs[0], name="read")
        with graph.colocate_with(None, ignore_existing=True), tf.device(device):
            return tf.identity(value, name="value")
