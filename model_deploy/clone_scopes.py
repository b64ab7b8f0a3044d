"""The scopes in which `model_fn` builds a clone: names, devices, clone number, variable reuse."""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import gpus, internals, placement, randomness
from model_deploy.config import DeploymentConfig, DeviceFunction
from model_deploy.parts import Part

# Suffixes of the types of summary ops, which have no GPU kernel.
_SUMMARY_OPS = ("Summary", "SummaryV2")

_building: contextvars.ContextVar[int] = contextvars.ContextVar("clone that is being built")


def current_clone() -> int:
    """Returns the number of the clone that `model_fn` is building, from 0 on.

    Use it to place stages, see `DeploymentConfig.stage_device`.  With `copy_clones` do not compute
    with it: every copy would have the first clone's number, and no check can notice.

    Raises:
      RuntimeError: outside of `model_fn`.
    """
    try:
        return _building.get()
    except LookupError:
        raise RuntimeError("current_clone is known only while model_fn is called") from None


@contextlib.contextmanager
def building_part(part: Part) -> Iterator[None]:
    """Opens the name scope, device scope and variable scope of a part; sets `part.scope`."""
    config, first_batch = part.config, part.config.first_batch
    device = _clone_device_function(config, part.clone_index, part.variables_device)
    token = _building.set(part.clone_index)
    try:
        with (
            randomness.for_batch(None if first_batch is None else first_batch + part.number),
            tf.name_scope(config.part_scope(part.clone_index, part.index)) as scope,
            tf.device(device),
            tf.variable_scope(tf.get_variable_scope(), reuse=True if part.number else None),
        ):
            part.scope = scope
            yield
    finally:
        _building.reset(token)


def _clone_device_function(
    config: DeploymentConfig, clone_index: int, variables_device: str | DeviceFunction
) -> DeviceFunction:
    """Returns a device function: variables to their device, all other ops to the clone's device.

    Summaries and ops without a kernel for the clone's GPU go to the worker's CPU.
    """
    clone_device = config.clone_device(clone_index)
    can_move = gpus.is_gpu(clone_device)
    stages = config.stage_devices(clone_index)

    def device(op: Any) -> str:
        if op.type.endswith(_SUMMARY_OPS):
            return config.inputs_device()
        if not placement.is_variable_op(op):
            if can_move and not gpus.has_gpu_kernel(op):
                if op.device in stages:
                    return config.inputs_device()
                if tf.DeviceSpec.from_string(op.device or "").device_type is None:
                    return placement.merge_devices(config.inputs_device(), op.device)
            return placement.merge_devices(clone_device, op.device)
        if op.device in stages:  # a stage's device is for ops, not for its weights
            internals.set_device(op, "")
        if callable(variables_device):
            return variables_device(op)
        return placement.merge_devices(variables_device, op.device)

    return device
