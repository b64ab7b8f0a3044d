"""Access to TensorFlow names that are not public: one function for each that this project uses."""

from typing import TYPE_CHECKING

from model_deploy.importing import import_when_used

if TYPE_CHECKING:
    from model_deploy.internals.batch_moments import (
        leaving_batch_moments,
        normalizes_examples,
        taking_batch_moments_by,
    )
    from model_deploy.internals.collective_steps import INSTANCE_KEY, number_collective_steps
    from model_deploy.internals.custom_gradients import (
        forget_custom_gradients,
        is_custom_gradient_input,
    )
    from model_deploy.internals.estimators import (
        EstimatorState,
        change_tf_config,
        old_head,
        read_tf_config,
        replace_tasks,
        replace_training,
    )
    from model_deploy.internals.feature_columns import embedding_column_by
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
    from model_deploy.internals.kernels import gpu_kernels, xla_kernels
    from model_deploy.internals.layer_building import building_layers_faster
    from model_deploy.internals.op_creation import NewOp, making_ops_by, tape_records
    from model_deploy.internals.ops import (
        PipelineNode,
        add_control_inputs,
        add_loop_inputs,
        add_outputs,
        barrier_class,
        clear_attribute,
        in_old_control_flow,
        is_reference,
        is_stateful,
        lookup_module,
        makes_old_control_flow,
        pipeline_nodes,
        replace_control_input,
        replace_input,
        set_attribute,
        set_control_inputs,
        set_device,
    )
    from model_deploy.internals.optimizer_calls import (
        OptimizerWatcher,
        computes_gradients_itself,
        follow_loss_scale,
        watching_optimizers,
    )
    from model_deploy.internals.process import (
        Running,
        heeding_errors_of_sessions,
        hide_deprecations,
        inline_callable,
        opening_sessions_by,
        ops_are_deterministic,
        record_at,
        running_sessions,
    )
    from model_deploy.internals.reads_in_functions import reading_where_variables_are
    from model_deploy.internals.session_waits import looking_for_variables_every
    from model_deploy.internals.slurm import SlurmStep, slurm_step
    from model_deploy.internals.variables import (
        forget_slots,
        is_partitioned,
        is_resource_variable,
        partitioned_variable,
        restored_by,
        saveables,
        saved_and_restored,
        saved_as,
        saved_from,
        set_initializer,
        set_slice_of,
        set_trainable,
        slice_of,
        with_operators,
    )

__all__ = [
    "INSTANCE_KEY",
    "EstimatorState",
    "LayerWatcher",
    "NewOp",
    "OptimizerWatcher",
    "PipelineNode",
    "Running",
    "SlurmStep",
    "add_control_inputs",
    "add_loop_inputs",
    "add_outputs",
    "barrier_class",
    "building_layers_faster",
    "calls_itself_stateful",
    "change_tf_config",
    "clear_attribute",
    "computes_gradients_itself",
    "embedding_column_by",
    "follow_loss_scale",
    "forget_custom_gradients",
    "forget_slots",
    "fresh_names",
    "fusing_batch_norms",
    "gpu_kernels",
    "heeding_errors_of_sessions",
    "hide_deprecations",
    "in_old_control_flow",
    "in_stateless_scope",
    "inline_callable",
    "is_custom_gradient_input",
    "is_partitioned",
    "is_reference",
    "is_resource_variable",
    "is_stateful",
    "keras_backend",
    "layer_variables",
    "leaving_batch_moments",
    "looking_for_variables_every",
    "lookup_module",
    "maker_of_variable",
    "makes_old_control_flow",
    "making_ops_by",
    "normalizes_examples",
    "number_collective_steps",
    "old_head",
    "opening_sessions_by",
    "ops_are_deterministic",
    "partitioned_variable",
    "pipeline_nodes",
    "read_tf_config",
    "reading_where_variables_are",
    "record_at",
    "regularizers",
    "replace_control_input",
    "replace_input",
    "replace_tasks",
    "replace_training",
    "restored_by",
    "running_sessions",
    "saveables",
    "saved_and_restored",
    "saved_as",
    "saved_from",
    "set_attribute",
    "set_constraint",
    "set_control_inputs",
    "set_device",
    "set_initializer",
    "set_slice_of",
    "set_trainable",
    "slice_of",
    "slurm_step",
    "sublayers",
    "taking_batch_moments_by",
    "tape_records",
    "tf_variable",
    "uses_weight_decay",
    "watching_layers",
    "watching_optimizers",
    "with_operators",
    "works_eagerly_only",
    "xla_kernels",
]

import_when_used(__name__)
