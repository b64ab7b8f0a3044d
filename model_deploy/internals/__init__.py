"""The names of TensorFlow that are not public and that this project uses, each in one function."""

from model_deploy.internals.batch_moments import normalizes_examples, taking_batch_moments_by
from model_deploy.internals.compilation import xla_kernels
from model_deploy.internals.determinism import ops_are_deterministic
from model_deploy.internals.kernels import gpu_kernels
from model_deploy.internals.notices import hide_deprecations
from model_deploy.internals.op_creation import NewOp, making_ops_by, tape_records
from model_deploy.internals.ops import (
    add_control_inputs,
    add_loop_inputs,
    add_outputs,
    clear_attribute,
    in_old_control_flow,
    is_reference,
    replace_input,
    set_attribute,
    set_device,
)
from model_deploy.internals.sessions import inline_callable
from model_deploy.internals.slurm import SlurmStep, slurm_step
from model_deploy.internals.variables import (
    forget_slots,
    is_partitioned,
    is_resource_variable,
    partitioned_variable,
    set_initializer,
    set_slice_of,
    slice_of,
)

__all__ = [
    "NewOp",
    "SlurmStep",
    "add_control_inputs",
    "add_loop_inputs",
    "add_outputs",
    "clear_attribute",
    "forget_slots",
    "gpu_kernels",
    "hide_deprecations",
    "in_old_control_flow",
    "inline_callable",
    "is_partitioned",
    "is_reference",
    "is_resource_variable",
    "making_ops_by",
    "normalizes_examples",
    "ops_are_deterministic",
    "partitioned_variable",
    "replace_input",
    "set_attribute",
    "set_device",
    "set_initializer",
    "set_slice_of",
    "slice_of",
    "slurm_step",
    "taking_batch_moments_by",
    "tape_records",
    "xla_kernels",
]
