"""The names of TensorFlow that are not public and that this project uses, each in one function."""

from model_deploy.internals.batch_moments import (
    leaving_batch_moments,
    normalizes_examples,
    taking_batch_moments_by,
)
from model_deploy.internals.compilation import xla_kernels
from model_deploy.internals.custom_gradients import (
    has_custom_gradient,
    is_custom_gradient_input,
)
from model_deploy.internals.fused_norms import fusing_batch_norms
from model_deploy.internals.keras_layers import (
    LayerWatcher,
    calls_itself_stateful,
    fresh_names,
    in_stateless_scope,
    keras_backend,
    layer_variables,
    maker_of_variable,
    regularizers,
    set_constraint,
    sublayers,
    tf_variable,
    uses_weight_decay,
    watching_layers,
    works_eagerly_only,
)
from model_deploy.internals.kernels import gpu_kernels
from model_deploy.internals.op_creation import NewOp, making_ops_by, tape_records
from model_deploy.internals.ops import (
    add_control_inputs,
    add_loop_inputs,
    add_outputs,
    clear_attribute,
    in_old_control_flow,
    is_reference,
    makes_old_control_flow,
    replace_input,
    set_attribute,
    set_device,
)
from model_deploy.internals.process import (
    hide_deprecations,
    inline_callable,
    ops_are_deterministic,
)
from model_deploy.internals.slurm import SlurmStep, slurm_step
from model_deploy.internals.variables import (
    forget_slots,
    is_partitioned,
    is_resource_variable,
    partitioned_variable,
    restored_by,
    set_initializer,
    set_slice_of,
    slice_of,
    with_operators,
)

__all__ = [
    "LayerWatcher",
    "NewOp",
    "SlurmStep",
    "add_control_inputs",
    "add_loop_inputs",
    "add_outputs",
    "calls_itself_stateful",
    "clear_attribute",
    "forget_slots",
    "fresh_names",
    "fusing_batch_norms",
    "gpu_kernels",
    "has_custom_gradient",
    "hide_deprecations",
    "in_old_control_flow",
    "in_stateless_scope",
    "inline_callable",
    "is_custom_gradient_input",
    "is_partitioned",
    "is_reference",
    "is_resource_variable",
    "keras_backend",
    "layer_variables",
    "leaving_batch_moments",
    "maker_of_variable",
    "makes_old_control_flow",
    "making_ops_by",
    "normalizes_examples",
    "ops_are_deterministic",
    "partitioned_variable",
    "regularizers",
    "replace_input",
    "restored_by",
    "set_attribute",
    "set_constraint",
    "set_device",
    "set_initializer",
    "set_slice_of",
    "slice_of",
    "slurm_step",
    "sublayers",
    "taking_batch_moments_by",
    "tape_records",
    "tf_variable",
    "uses_weight_decay",
    "watching_layers",
    "with_operators",
    "works_eagerly_only",
    "xla_kernels",
]
