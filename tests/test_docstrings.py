"""What takes or returns tensors says in its docstring what shapes they have."""

import importlib
import inspect
import pkgutil
import re

import pytest

import model_deploy

pytestmark = pytest.mark.one_mode


def _table(text):
    """Names such as `inputs.Order` from lines with a room and, behind a colon, its names."""
    names, room = [], ""
    for word in text.split():
        if word.endswith(":"):
            room = word.removesuffix(":")
        else:
            names.append(f"{room}.{word}")
    return names


# Of a class the docstrings of its methods count, too. Names are those of the room that exports
# them; what `model_deploy.training` and `model_deploy` have of other rooms stands there.
WITH_TENSORS = _table(
    """
    all_reduce: CopiesFingerprints VariableCopies copies_difference mean_changes
        sendable_variables own_variables rows_of_replicas
    collectives: Collectives Left LowRankSums exchange_gradients fill_up gather_rows rows_to_send
        sum_narrow without_filling
    local_steps: Exchanges
    checkpoints: Restorer VariableRow by_name compare variables_to_save variables_to_train
    classification: Classifier add_classification_losses
    cluster: EndOps
    embeddings: Constant FixedTable GrowingShard GrowingTable Normal Uniform embedding_column
        look_up moved_variables scatter
    estimator: deployed
    evaluation: Evaluation Evaluator Predictions evaluate
    metrics: AUC Calibration CalibrationError LogLoss Metric NotedMetric PRAUC PrecisionAt RecallAt
        add_metric exact_area
    exporting: Serving Signature write_tflite
    image_training: Networks
    inputs: ArraySource Augmentation Column CsvDataset EvalBatches Order ParquetDataset
        Preprocessing RecordDataset Texts TrainBatches eval_batches read_idx read_texts
        register_preprocessing split_batch train_batches
    internals: LayerWatcher NewOp add_loop_inputs add_outputs embedding_column_by inline_callable
        is_custom_gradient_input is_reference
        partitioned_variable regularizers replace_input restored_by saveables saved_and_restored
        saved_as saved_from set_slice_of slice_of
        taking_batch_moments_by uses_weight_decay
    optimization: AdamWOptimizer LAMBOptimizer LARSOptimizer LazyAdamOptimizer Plateau
        RowAdamOptimizer
        RowAdamWOptimizer RowFtrlOptimizer RowMomentumOptimizer RowRMSPropOptimizer
        averages_to_restore current_value
        build_learning_rate build_optimizer layer_name moving_average_update weight_decay_note
    keras: DeployedKerasModel Translation deploy_model export_checkpoint init_fn load_checkpoint
        read_checkpoint read_weights restore_fn translate_optimizer
    keras_layers: update_after using_own_variables
    horovod: DistributedGradientTape DistributedOptimizer allgather allreduce alltoall broadcast
        broadcast_variables
    parameter_servers: EarlyUpdates StepCounter SynchronousOptimizer keep_indices pack_gradients
        send_ids send_rows unsaved_variable value_of
    rotation: Rest Rotated local_variable rotate
    updating: Change ChangeOfParts Condition LossScale PartUpdates apply_changes changes_by_parts
        note_late part_updates read_late shared_out
    ways: CloneUpdate Training Update gradients_of_clones
    verification: Verification
    training: train
    model_deploy: Clone DeployedModel average_gradients batches_taken deploy optimize_clones
    """
)

# These take and return options, files, addresses, graphs, ops or sessions, functions of the
# user's, and variables of which only the kind or the op counts; or they are modules.
WITHOUT_TENSORS = _table(
    """
    all_reduce: OwnValues StartHook add_start_hook added_by average_state has_own_values note_alike
        note_common note_own session_config set_up_session uses_nccl
    collectives: CARRIED FEW_MEMBERS_MOST_BYTES InProcess LEAST_BYTES MOST_BYTES PerClone
        add_missing_members can_be_sent carried_as carrier collectives_in_process collectives_of
        largest left_packs numbers_sent packing packs_of sizes_of
    local_steps: parts_by_bytes
    checkpoints: BEST_DIR BestCheckpoint CheckpointWatch CheckpointWriter FineTuneOptions MISSING
        NotSavedError OneAtATime Storage
        RESTORED SKIPPED check_rows check_start checkpoint_to_resume checkpoints_in clear_end
        describe_counts excluded_names few find_checkpoint fitting_checkpoint is_checkpoint
        is_lost_connection mark_end report_unfinished restore_fn resume_under_way step_of
        table changes_since merge BEST_FILE DamagedCheckpointError GoodCheckpoints Source
        UNREADABLE check_fits say_once with_checkpoint
    classification: ClassifierOptions DeploymentOptions clone_batch_size clones_in_update
        deployment_config get_dataset get_evaluation_dataset gone way_to_train
    cluster: Cluster ClusterOptions LostSteps Resolved StandStill Task WORKER WORLD_FILE World
        begun_file build_end_ops close_session cluster_from_flags cluster_from_slurm
        cluster_from_tf_config
        connection_error end_after_refusal end_process end_servers give_up_lost_servers
        all_wait asks_for_world is_given_up is_refusal names_of own_gpus read_world ready_file
        resolve run_unless_refused run_until_closed serve_until_done session_config
        signal_done start_server tasks_needed unreachable unsure_end wait_at_exit wait_for_loss
        wait_for_tasks wait_for_workers waiting_file write_world
    commands: NOT_SAVED OPTIONS_FILE Options REFUSED aligned line_of make_folder named_as option
        parse_json parse_options read_checked read_options replaced_file run_command saved_options
        shortened
        tell without_font_notices without_tensorflow_notices write_checked write_options
    copying: Copies
    elastic: Build ElasticModel Member WorldChanged WorldWatch servers_of train_elastic
    estimator: NotDeployableError load
    evaluation: EvaluationWriter MetricsEvaluation MetricsEvaluator confusion_png has_evaluation
    metrics: UndefinedMetricError metrics_of
    gpus: Holder cpu_beside
        device_errors_explained gpu_holders has_gpu_kernel is_divided is_gpu placing session_config
        use_tf32
    exporting: TYPES check_is_new check_onnx restore_to_export write_frozen_graph write_onnx
        write_saved_model
    inputs: Corpus CorruptRecordError Dataset EncodedSource Held check_dataset_name convert_dataset
        dataset_names
        download_dataset download_file extract_archive get_dataset get_preprocessing held_in
        preprocessing preprocessing_names register_dataset
    internals: EstimatorState INSTANCE_KEY OptimizerWatcher PipelineNode Running SlurmStep
        pipeline_nodes add_control_inputs barrier_class
        calls_itself_stateful change_tf_config clear_attribute building_layers_faster
        computes_gradients_itself
        follow_loss_scale forget_custom_gradients forget_slots fresh_names fusing_batch_norms
        gpu_kernels
        heeding_errors_of_sessions hide_deprecations in_old_control_flow
        in_stateless_scope is_partitioned is_resource_variable is_stateful keras_backend
        layer_variables replace_control_input
        leaving_batch_moments looking_for_variables_every lookup_module makes_old_control_flow
        maker_of_variable making_ops_by normalizes_examples number_collective_steps
        old_head opening_sessions_by
        ops_are_deterministic read_tf_config reading_where_variables_are record_at replace_tasks
        replace_training
        running_sessions
        set_attribute set_constraint set_control_inputs set_device set_initializer
        set_trainable slurm_step sublayers
        tape_records tf_variable
        watching_layers watching_optimizers with_operators works_eagerly_only xla_kernels
    keras: check_export is_weights_file
    keras_layers: KerasLayers by_no_layer seeing_layers
    horovod: Adasum Average BroadcastGlobalVariablesHook Compression Sum
        broadcast_global_variables ccl_built cross_rank cross_size cuda_built ddl_built gloo_built
        gloo_enabled init is_homogeneous is_initialized local_rank local_size mpi_built mpi_enabled
        mpi_threads_supported nccl_built rank rocm_built session_config session_target shutdown size
    launch: ElasticLauncher ElasticServersLauncher JoiningLauncher LaunchOptions Launcher
        ReservedPorts launched_again
    embeddings: SharedLookUps connect_slots growing_shards
    parameter_servers: Fence SharedReads is_remote note_fence noted_fence noted_reads_ahead
        repeats_steps
    plan: Circumstances Link Load Network Plan Row Step WAYS Way best_save_interval draw
        expected_slowest network_of plan_for step table useful_share
    profile: ProfileHook parse_steps
    optimization: LearningRateOptions OptimizerOptions check_plateau_is_evaluated has_tables
        learning_rate_note noted_plateau scaled_learning_rate
    tf1: contrib dataset_factory preprocessing_factory
    rewrites: BatchNorms Compilation Layout Precision computing_in computing_in_layout
        describe_compilation
    verification: CorruptionError
    importing: FinderBy LoaderBy finding_by import_when_used lazy_imports with_moved_names
    processes: JOB_NAMES check_address check_task_id visible_gpus
    settings: AGGREGATE_ON ArithmeticSettings CloneSettings DATA_FORMATS DYNAMIC ElasticSettings
        GpuSettings PRECISIONS PS_STRATEGIES WIRE_PRECISIONS WaySettings check_loss_scale
    updating: check_updates_wait gate_op may_change_state note_gate note_replica_counts ops_after
        replica_counts split_functions with_functions
    ways: Way way_for
    runs: METRICS_FILE Run STEPS TIME_FILE TimeSpent differing_options draw_runs find_runs
        read_json_lines read_metrics read_run read_run_options read_time_spent runs_table
        write_time_spent
    trackers: NAMES Sending TrackedRun Tracker Tracking check_names send_model tracker_named
        tracking
    status: STATUS_FILE Status TaskStatus read_status status_report write_status
    image_training: EvalOptions ExportOptions TrainOptions check_task evaluate export train
        train_task
    training: Board Ledger LoopOptions Place TrainResult check_writable join join_cluster serve
        say session_config
    describing: DeviceRow PlacementReport TransferRow describe draw_deployment
    model_deploy: DeploymentConfig create_clones current_clone random_by_step slim
    """
)

# A word that names a shape, or a type with its sizes, as in `float32 [n, classes]`.
_SHAPE = re.compile(
    r"\b(?:scalars?|vectors?|rows?|(?:\w+_)?shapes?)\b|\b(?:u?int|float|bool|string)s?\d* \[",
    re.IGNORECASE,
)


def _exports():
    """The names that rooms export; what two of them pass on is left to the room that has it."""
    rooms = [module.name for module in pkgutil.iter_modules(model_deploy.__path__) if module.ispkg]
    rooms.sort(key=lambda room: (room == "training", room))
    found = []
    for room in (*rooms, "model_deploy"):
        for name in _module(room).__all__:
            others = [other for other in found if other.endswith(f".{name}")]
            if not any(_value(other) is getattr(_module(room), name) for other in others):
                found.append(f"{room}.{name}")
    return found


def _module(room):
    return importlib.import_module(f"model_deploy.{room}".removesuffix(".model_deploy"))


def _value(export):
    room, _, name = export.rpartition(".")
    return getattr(_module(room), name)


def _docstring(value):
    """The docstring of a function, or those of a class and of its own methods."""
    texts = [inspect.getdoc(value) or ""]
    if inspect.isclass(value):
        members = [getattr(member, "func", member) for member in vars(value).values()]
        texts += [
            inspect.getdoc(member) or ""
            for member in members
            if inspect.isfunction(member) or isinstance(member, property | classmethod)
        ]
    return "\n".join(texts)


def test_every_export_is_in_a_table():
    """What is exported stands in one of the two tables, and they have nothing else."""
    tables, exports = [*WITH_TENSORS, *WITHOUT_TENSORS], _exports()
    assert [name for name in exports if tables.count(name) != 1] == []
    assert [name for name in tables if name not in exports] == []


@pytest.mark.parametrize("name", WITH_TENSORS)
def test_shapes_are_said(name):
    """The docstring of what takes or returns tensors names a shape."""
    assert _SHAPE.search(_docstring(_value(name))), _docstring(_value(name))


@pytest.mark.parametrize(
    ("text", "names_one"),
    [
        pytest.param("A float64 scalar.", True, id="scalar"),
        pytest.param("Images, uint8 [n, h, w, c].", True, id="sizes"),
        pytest.param("an `IndexedSlices` over its rows", True, id="rows"),
        pytest.param("It has `full_name`, `var_shape`.", True, id="attribute"),
        pytest.param("The logits, reshaped, and `labels[0]`.", False, id="no-shape"),
        pytest.param("In [0, num_clones); it grows.", False, id="range"),
    ],
)
def test_what_names_a_shape(text, names_one):
    """Words and sizes count, ranges and indices do not."""
    assert bool(_SHAPE.search(text)) is names_one
