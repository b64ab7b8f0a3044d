"""Reads of variables on parameter servers that travel in 16 bits."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals, placement
from model_deploy.collectives import packing
from model_deploy.config import DeploymentConfig
from model_deploy.op_types import READS
from model_deploy.parameter_servers.needed import needed_by
from model_deploy.parameter_servers.shared_reads import is_remote, order_reads


class _Crossing(NamedTuple):
    """A value of a variable that is sent from its parameter server to the worker.

    Attributes:
      value: the variable's value, or rows of it, on the parameter server.
      device: device of the variable.
      uses: (input index, op) for each use by an op of the worker.
    """

    value: Any
    device: str
    uses: list[tuple[int, Any]]


def narrow_reads(
    config: DeploymentConfig, shared: Sequence[Any], computed: Iterable[Any]
) -> list[Any]:
    """Sends trained variables to the worker in `config.wire_dtype`, for losses and gradients.

    Call it when gradients are built; they are then those at the rounded values.  Reads the
    collection `TRAINABLE_VARIABLES`.

    Not rounded are reads by other ops, such as updates of averages; untrained variables, as update
    ops may write back the value that they read; and reads inside of loops and conditions.

    Args:
      config: the deployment; without parameter servers, or with float32, nothing is changed.
      shared: what `share_reads` returned, tensors of their variables' shapes on the worker.
      computed: losses and gradients of the step, tensors of any shapes.

    Returns:
      The values of `shared` that still travel in float32, for `pack_reads`.
    """
    if config.num_ps_tasks == 0 or config.wire_dtype == tf.float32:
        return list(shared)
    needed = needed_by([tensor.op for tensor in computed])
    trained = {variable.op for variable in tf.trainable_variables()}
    exact = []
    in_packs: dict[Any, _Crossing] = {}
    for value in shared:
        read = value.op.inputs[0]
        variable = _variable_of(config, read)
        uses = [(index, op) for index, op in graph_walk.uses_of(value) if op in needed]
        if uses and variable in trained:
            in_packs[variable] = _Crossing(read, variable.device, uses)
        else:
            exact.append(value)
    alone: dict[Any, _Crossing] = {}
    for value, use in _unshared_reads(config, needed.difference(value.op for value in shared)):
        variable = _variable_of(config, value)
        if variable in trained:
            key = variable if _is_any_read(value.op, variable) else value.name
            found = in_packs if key in in_packs else alone
            found.setdefault(key, _Crossing(value, variable.device, [])).uses.append(use)
    with tf.control_dependencies(None):
        _narrow_in_packs(config, list(in_packs.values()))
        for crossing in alone.values():
            _narrow(config, crossing)
    return exact


def _unshared_reads(
    config: DeploymentConfig, ops: Iterable[Any]
) -> Iterator[tuple[Any, tuple[int, Any]]]:
    """Yields reads by ops of the worker that `share_reads` left alone, with (input index, op)."""
    for op in sorted(ops, key=lambda op: str(op.name)):
        for index, value in enumerate(op.inputs):
            if value.op.type in READS and not _is_on_ps(config, op):
                yield value, (index, op)


def _variable_of(config: DeploymentConfig, value: Any) -> Any:
    """Returns the op of the float32 variable that `value` is read from beside it, or None."""
    if value.dtype.base_dtype != tf.float32:
        return None
    op = value.op
    while not placement.is_variable_op(op):
        if op.type not in READS or not _is_on_ps(config, op):
            return None
        if internals.in_old_control_flow(op):  # a use outside would become part of the loop
            return None
        op = op.inputs[0].op
    return op


def _is_any_read(op: Any, variable: Any) -> bool:
    """Whether an op reads the whole variable, without being ordered after another op."""
    return op.inputs[0].op is variable and len(op.inputs) == 1 and not op.control_inputs


def _is_on_ps(config: DeploymentConfig, op: Any) -> bool:
    # An op that uses a resource runs beside it, whatever its own device says.
    handles = [tensor.op for tensor in op.inputs if tensor.dtype == tf.resource]
    device = next((h.device for h in handles if placement.is_variable_op(h)), op.device)
    return is_remote(config, device)


def _narrow_in_packs(config: DeploymentConfig, crossings: Sequence[_Crossing]) -> None:
    """Sends small values in one pack per parameter server, large values one after the other.

    Only for values that wait for no other op: a value that waits would hold up the whole pack.
    """
    by_device: dict[str, list[_Crossing]] = {}
    large = []
    for crossing in crossings:
        if packing.is_small(crossing.value):
            by_device.setdefault(crossing.device, []).append(crossing)
        else:
            large.append((crossing.value, _narrow(config, crossing)))
    order_reads(large)
    for device, small in by_device.items():
        values = [crossing.value for crossing in small]
        moved = packing.move_packed(values, device, config.inputs_device(), config.wire_dtype)
        for crossing, value in zip(small, moved, strict=True):
            _redirect_uses(crossing, value)


def _narrow(config: DeploymentConfig, crossing: _Crossing) -> Any:
    device = config.inputs_device()
    value = packing.move(crossing.value, crossing.device, device, config.wire_dtype)
    _redirect_uses(crossing, value)
    return value


def _redirect_uses(crossing: _Crossing, value: Any) -> None:
    for index, op in crossing.uses:
        internals.replace_input(op, index, value)
