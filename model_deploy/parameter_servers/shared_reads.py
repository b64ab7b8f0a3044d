"""One transfer of each variable between parameter server and worker, per step and direction."""

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals, placement
from model_deploy.collectives import packing
from model_deploy.config import DeploymentConfig
from model_deploy.gradients import GradientAndVariable

# Bytes that a parameter server sends ahead of acknowledgements: a millisecond at 10 Gbit/s.
_UNDER_WAY = 1 << 20


def share_reads(config: DeploymentConfig, ops: Sequence[Any]) -> list[Any]:
    """Makes all ops that read the same variable on a parameter server use one read of it.

    TensorFlow sends the whole value of a resource variable for each use, L2 regularization and each
    clone included, and of a reference variable for each device that uses it.  With shared reads the
    worker's CPU gets the value once and hands it to all uses.

    Not shared are reads that may see another value (under control dependencies, such as after an
    assignment, and in conditions and loops), and uses on the parameter server.  Does nothing
    without parameter servers.

    Args:
      config: the deployment.
      ops: the ops that may share reads, in the order in which they were made.

    Returns:
      The shared values on the worker's CPU, of the variables' shapes and dtypes, for `pack_reads`.
    """
    if config.num_ps_tasks == 0:
        return []
    values = []
    changeable = set(ops)
    for variable, reads in _reads_by_variable(ops).items():
        uses = [
            (index, op)
            for read in reads
            for index, op in graph_walk.uses_of(read.outputs[0])
            if op in changeable and not is_remote(config, op.device)
        ]
        if uses:
            values.append(_read_once(variable, reads[0].outputs[0], config.inputs_device()))
            for index, op in uses:
                internals.replace_input(op, index, values[-1])
    return values


def pack_reads(values: Sequence[Any]) -> None:
    """Sends small ones of the shared values in one pack, and the others one after the other.

    Call it when gradients are built: they are taken by the unpacked variables.

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
    """Makes each parameter server send variables in the order in which they are needed.

    Sent all at once, variables would share the link and all arrive at the end, and the forward pass
    would begin late.  So a read waits until an earlier one has arrived; at least `_UNDER_WAY` bytes
    lie between the two, so that the link is never idle.

    Args:
      reads: for each variable, in the wanted order, the new read on the parameter server and the
        value received on the worker, tensors of the variable's shape.
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
    """Sends the gradients of small variables in one pack to each parameter server.

    All float32 gradients, packed or not, are sent in `config.wire_dtype`.

    Args:
      config: the deployment; without parameter servers nothing is changed.
      gradients: `(gradient, variable)` pairs; a gradient has the variable's shape, is an
        `IndexedSlices` over its rows, or None.
      after: a tensor of the worker, of any shape, that all gradients wait for before they are
        sent.  Waiting on the parameter servers would take a message to each of them.
      rows_go: whether to move rows of sparse gradients too; else the caller moves them.

    Returns:
      The same pairs; gradients that were packed or rounded are now on their variables' devices.
    """
    packed = list(gradients)
    if config.num_ps_tasks == 0:
        return packed
    if after is not None:
        packed = [(_delayed(after, gradient), variable) for gradient, variable in gradients]
    small = [
        i
        for i, (gradient, _) in enumerate(packed)
        if tf.is_tensor(gradient)
        and not isinstance(gradient, tf.IndexedSlices)
        and packing.is_small(gradient)
    ]
    for device, places in _by_device([packed[i][1] for i in small]).items():
        moved = [packed[small[place]] for place in places]
        dtype = config.wire_dtype if is_remote(config, device) else tf.float32
        parts = packing.move_packed([g for g, _ in moved], config.optimizer_device(), device, dtype)
        for place, part, (_, variable) in zip(places, parts, moved, strict=True):
            packed[small[place]] = (part, variable)
    if rows_go:
        _pack_rows(config, packed)
    return [(_moved_to_variable(config, g, variable, rows_go), variable) for g, variable in packed]


def _pack_rows(config: DeploymentConfig, gradients: list[GradientAndVariable]) -> None:
    """Sends the rows of all sparse gradients in one pack to each parameter server."""
    sparse = [
        i
        for i, (gradient, variable) in enumerate(gradients)
        if isinstance(gradient, tf.IndexedSlices)
        and gradient.values.dtype == tf.float32
        and is_remote(config, variable.device)
        and not is_remote(config, gradient.values.device)
    ]
    for device, places in _by_device([gradients[i][1] for i in sparse]).items():
        of_device = [sparse[place] for place in places]
        moved = packing.move_rows(
            [gradients[i] for i in of_device],
            config.optimizer_device(),
            device,
            config.wire_dtype,
        )
        for i, rows in zip(of_device, moved, strict=True):
            gradients[i] = (rows, gradients[i][1])


def _moved_to_variable(
    config: DeploymentConfig, gradient: Any, variable: Any, rows_go: bool
) -> Any:
    """Moves a gradient to its variable's device, in `config.wire_dtype`, unless it is there."""
    if isinstance(gradient, tf.IndexedSlices):
        if not rows_go:
            return gradient
        values = _moved_to_variable(config, gradient.values, variable, rows_go)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    if (
        gradient is None
        or is_remote(config, gradient.device)
        or not is_remote(config, variable.device)
    ):
        return gradient
    return packing.move(gradient, gradient.device, variable.device, config.wire_dtype)


def is_remote(config: DeploymentConfig, device: str) -> bool:
    """Whether a device is one of a parameter server."""
    return bool(tf.DeviceSpec.from_string(device).job == config.ps_job_name)


def _delayed(after: Any, gradient: Any) -> Any:
    """Returns the same gradient on the same device, after `after`."""
    if isinstance(gradient, tf.IndexedSlices):
        values = _delayed(after, gradient.values)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    with tf.device(gradient.device), tf.control_dependencies([after]):
        return tf.identity(gradient)


def _by_device(items: Sequence[Any]) -> dict[str, list[int]]:
    """Returns places in `items` by device, without devices of a single item, which need no pack."""
    places: dict[str, list[int]] = {}
    for i, item in enumerate(items):
        places.setdefault(item.device, []).append(i)
    return {device: found for device, found in places.items() if len(found) > 1}


def _reads_by_variable(ops: Iterable[Any]) -> dict[Any, list[Any]]:
    """Returns, by variable op, the reads among `ops` that are not ordered after another op."""
    found: dict[Any, list[Any]] = {}
    for op in ops:
        # The read of a reference variable is an `Identity`.
        if op.type not in ("ReadVariableOp", "Identity") or op.control_inputs:
            continue
        variable = op.inputs[0].op
        if placement.is_variable_op(variable) and not internals.in_old_control_flow(op):
            found.setdefault(variable, []).append(op)
    return found


def _read_once(variable: Any, read: Any, device: str) -> Any:
    """Makes a new read of a variable, on `device`; copied clones may hold copies of the old one."""
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
