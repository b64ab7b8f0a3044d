"""`tf.contrib`: where each name is found."""

import functools
import importlib
import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from model_deploy.tf1 import contrib, gone
from model_deploy.tf1.contrib import contrib_module, table
from tests.tf1 import contrib_table

pytestmark = pytest.mark.one_mode

# Part -> names that programs used, all of them functions or classes.
_USED = {
    "checkpoint": "Checkpoint CheckpointManager",
    "compiler.jit": "experimental_jit_scope",
    "crf": "crf_decode crf_log_likelihood crf_log_norm crf_sequence_score viterbi_decode",
    "data": (
        "Dataset TFRecordDataset batch_and_drop_remainder group_by_window ignore_errors "
        "map_and_batch parallel_interleave prefetch_to_device shuffle_and_repeat unbatch"
    ),
    "distribute": (
        "AllReduceCrossDeviceOps AllReduceCrossTowerOps MirroredStrategy OneDeviceStrategy "
        "ReductionToOneDeviceCrossDeviceOps ReductionToOneDeviceCrossTowerOps get_replica_context "
        "has_strategy"
    ),
    "distributions": (
        "Bernoulli Beta Categorical Dirichlet Gamma Laplace Multinomial Normal StudentT Uniform "
        "kl_divergence"
    ),
    "framework": (
        "add_arg_scope add_model_variable arg_scope assign_from_checkpoint "
        "assign_from_checkpoint_fn checkpoints_iterator create_global_step filter_variables "
        "get_global_step get_model_variables get_name_scope get_or_create_global_step "
        "get_trainable_variables get_unique_variable get_variables get_variables_by_name "
        "get_variables_to_restore has_arg_scope init_from_checkpoint is_tensor list_variables "
        "load_checkpoint load_variable local_variable model_variable variable zero_initializer"
    ),
    "hooks": "ProfilerHook",
    "image": "angles_to_projective_transforms dense_image_warp rotate transform translate",
    "layers": (
        "embed_sequence apply_regularization avg_pool2d batch_norm bias_add conv2d conv2d_in_plane "
        "conv2d_transpose convolution2d dropout elu flatten fully_connected instance_norm "
        "l1_regularizer l2_regularizer layer_norm linear max_pool2d one_hot_encoding "
        "optimize_loss relu repeat safe_embedding_lookup_sparse separable_conv2d softmax stack "
        "sum_regularizer summarize_activation unit_norm variance_scaling_initializer "
        "xavier_initializer xavier_initializer_conv2d"
    ),
    "learn": "Experiment ModeKeys RunConfig",
    "learn.learn_runner": "run",
    "legacy_seq2seq": "basic_rnn_seq2seq rnn_decoder sequence_loss sequence_loss_by_example",
    "losses": (
        "absolute_difference add_loss compute_weighted_loss cosine_distance get_losses "
        "get_regularization_losses get_total_loss hinge_loss log_loss mean_pairwise_squared_error "
        "mean_squared_error sigmoid_cross_entropy softmax_cross_entropy "
        "sparse_softmax_cross_entropy"
    ),
    "lookup": (
        "HashTable KeyValueTensorInitializer MutableHashTable TextFileInitializer "
        "index_table_from_file index_table_from_tensor index_to_string_table_from_tensor"
    ),
    "metrics": (
        "accuracy aggregate_metric_map aggregate_metrics confusion_matrix set_difference "
        "set_intersection set_size set_union streaming_accuracy streaming_auc streaming_mean "
        "streaming_mean_iou streaming_precision streaming_recall streaming_recall_at_k"
    ),
    "keras": "Input Model Sequential",
    "nn": "deprecated_flipped_softmax_cross_entropy_with_logits",
    "opt": (
        "AdamWOptimizer LazyAdamOptimizer MomentumWOptimizer MovingAverageOptimizer NadamOptimizer "
        "ScipyOptimizerInterface extend_with_decoupled_weight_decay"
    ),
    "predictor": "from_saved_model",
    "proto": "decode_proto encode_proto",
    "rnn": (
        "DeviceWrapper GRUBlockCell GRUBlockCellV2 LSTMBlockCell LSTMBlockFusedCell "
        "LayerNormBasicLSTMCell ResidualWrapper stack_bidirectional_dynamic_rnn "
        "BasicLSTMCell BasicRNNCell DropoutWrapper GRUCell LSTMCell LSTMStateTuple MultiRNNCell "
        "RNNCell static_bidirectional_rnn static_rnn"
    ),
    "seq2seq": "BasicDecoder BeamSearchDecoder TrainingHelper dynamic_decode sequence_loss",
    "signal": "stft",
    "slim": (
        "arg_scope assign_from_checkpoint_fn batch_norm conv2d create_global_step dropout flatten "
        "fully_connected get_model_variables get_or_create_global_step get_variables_to_restore "
        "l2_regularizer max_pool2d one_hot_encoding repeat separable_conv2d stack "
        "variance_scaling_initializer xavier_initializer"
    ),
    "staging": "StagingArea",
    "stateless": "stateless_multinomial stateless_random_normal stateless_random_uniform",
    "summary": (
        "all_summary_ops always_record_summaries create_file_writer flush graph histogram image "
        "initialize never_record_summaries record_summaries_every_n_global_steps scalar"
    ),
    "tfprof": "ProfileContext",
    "training": (
        "GreedyLoadBalancingStrategy HParams SequenceQueueingStateSaver "
        "batch_sequences_with_states bucket bucket_by_sequence_length clip_gradient_norms "
        "create_train_op evaluate_once evaluate_repeatedly"
    ),
    "tpu": (
        "CrossShardOptimizer InputPipelineConfig RunConfig TPUConfig TPUEstimator TPUEstimatorSpec "
        "bfloat16_scope"
    ),
    "util": "constant_value make_tensor_proto make_ndarray",
}
_MODULES = {
    "slim": "dataset dataset_data_provider evaluation learning losses metrics nets queues "
    "tfexample_decoder",
    "framework": "nest",
    "learn": "datasets",
}


@pytest.mark.parametrize("part", _USED)
def test_functions_of_each_part(part):
    """What programs call is there, and no module of the same name stands in its place."""
    module = functools.reduce(getattr, part.split("."), contrib)
    found = {name: getattr(module, name, None) for name in _USED[part].split()}
    wrong = (types.ModuleType, type(None))
    assert [name for name, value in found.items() if isinstance(value, wrong)] == []
    assert all(map(callable, found.values()))


def test_modules_of_each_part():
    """What programs take further names from is a module."""
    for part, names in _MODULES.items():
        module = contrib_module(f"tensorflow.contrib.{part}")
        for name in names.split():
            assert isinstance(getattr(module, name), types.ModuleType), name


@pytest.mark.parametrize("part", table._PARTS)
def test_each_entry_of_the_table_resolves(part):
    """Providers can be imported, packages too, and extras have values."""
    entry = table._PARTS[part]
    if part == "tensorboard":
        pytest.importorskip("tensorboard")
    for name in filter(None, [*entry.providers, entry.package]):
        assert importlib.import_module(name)
    for make in entry.extras.values():
        assert make() is not None
    assert getattr(contrib_module("tensorflow.contrib"), part).__name__.endswith(part)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("tensorflow.contrib.slim.nets", "alexnet inception resnet_v1 resnet_v2 vgg"),
        ("tensorflow.contrib.slim.python.slim.nets", "resnet_utils vgg"),
        ("tensorflow.contrib.slim.python.slim.nets.resnet_v1", "resnet_v1_50"),
        ("tensorflow.contrib.slim.python.slim.learning", "train train_step"),
        ("tensorflow.contrib.slim.python.slim.data", "dataset tfexample_decoder"),
        ("tensorflow.contrib.layers.python.layers", "initializers layers regularizers utils"),
        ("tensorflow.contrib.layers.python.layers.utils", "collect_named_outputs smart_cond"),
        ("tensorflow.contrib.layers.python.layers.layers", "batch_norm conv2d"),
        ("tensorflow.contrib.framework.python.ops", "add_arg_scope variables"),
        ("tensorflow.contrib.framework.python.ops.arg_scope", "add_arg_scope arg_scope"),
        ("tensorflow.contrib.framework.python.ops.variables", "model_variable variable"),
        ("tensorflow.contrib.learn.python.learn.datasets.mnist", "read_data_sets"),
        ("tensorflow.contrib.learn.python.learn", "learn_runner"),
        ("tensorflow.contrib.learn.python.learn.estimators", "run_config"),
        ("tensorflow.contrib.learn.python.learn.learn_runner", "run"),
        ("tensorflow.contrib.losses.python.losses.loss_ops", "softmax_cross_entropy"),
        ("tensorflow.contrib.metrics.python.ops.metric_ops", "streaming_accuracy"),
        ("tensorflow.contrib.rnn.python.ops.rnn_cell", "BasicLSTMCell"),
        ("tensorflow.contrib.tpu.python.tpu", "tpu_config tpu_estimator"),
        ("tensorflow.contrib.tpu.python.tpu.tpu_config", "InputPipelineConfig TPUConfig"),
        ("tensorflow.contrib.tpu.python.tpu.tpu_estimator", "TPUEstimator TPUEstimatorSpec"),
        ("tensorflow.contrib.training.python.training.hparam", "HParams parse_values"),
        ("tensorflow.contrib.training.python.training.training", "create_train_op"),
    ],
)
def test_paths_of_files(name, wanted):
    """Programs import from the files of a part by their paths in TensorFlow 1."""
    module = contrib_module(name)
    assert [each for each in wanted.split() if not hasattr(module, each)] == []


def test_page_has_the_table():
    """docs/from_tf_slim.md says where each part is now: `python -m tests.tf1.contrib_table --write`
    writes this table.
    """
    assert contrib_table.in_page() == contrib_table.rows()
    for part, names in _USED.items():
        assert f"`{part.partition('.')[0]}`" in contrib_table.in_page(), names


def test_slim_is_ours():
    """Arg scopes of one reach the layers of the other.

    `arg_scope` of the folder of files is the function, too: by `import *` it hid the file.
    """
    assert contrib_module("tensorflow.contrib.slim").conv2d is slim.conv2d
    assert contrib_module("tensorflow.contrib.layers").conv2d is slim.conv2d
    assert contrib.slim is contrib_module("tensorflow.contrib.slim")
    assert contrib.layers.l2_regularizer is slim.l2_regularizer
    folder = contrib_module("tensorflow.contrib.framework.python.ops")
    assert folder.arg_scope is slim.arg_scope
    assert isinstance(folder.variables, types.ModuleType)
    assert contrib_module("tensorflow.contrib.framework").arg_scope is slim.arg_scope


def test_what_is_gone():
    """Importing what is nowhere is an error that says what to use; of the optimizers of
    `tf.contrib.opt` that are not written here it names the nearest that there is.
    """
    for name in ("contrib.never", "contrib.never.files"):
        with pytest.raises(ImportError, match=f"{name} is gone since .* has no contrib"):
            contrib_module(f"tensorflow.{name}")
    for name, advice in (
        ("LARSOptimizer", "use model_deploy.optimization.LARSOptimizer"),
        ("ShampooOptimizer", "use an optimizer of tf.train"),
    ):
        with pytest.raises(AttributeError, match=f"contrib.opt.{name} is gone since .*: {advice}"):
            getattr(contrib.opt, name)
    assert not hasattr(contrib, "__path_of_nothing__")


@pytest.mark.parametrize("part", table._PARTS)
def test_each_part_has_advice(part):
    """What a part does not have is an error that says since when, and what to use."""
    message = gone.advice(f"tensorflow.contrib.{part}.Other")
    assert message.startswith(f"tf.contrib.{part}.Other is gone since TensorFlow 2.0: ")
    assert "has no contrib" not in message


def test_summaries_of_contrib_go_to_the_writer_around_them(tmp_path):
    """`tf.contrib.summary.scalar` writes in each step that it records, at the global step."""
    summary = contrib_module("tensorflow.contrib.summary")
    step = tf.train.get_or_create_global_step()
    with summary.create_file_writer(str(tmp_path)).as_default(), tf.Session() as session:
        summary.scalar("unrecorded", 1.0)
        with summary.record_summaries_every_n_global_steps(2):
            summary.scalar("step_twice", tf.cast(step * 2, tf.float32))
        writes, flush = summary.all_summary_ops(), summary.flush()
        session.run(tf.global_variables_initializer())
        summary.initialize(session=session)
        for _ in range(4):
            session.run(writes)
            session.run(tf.assign_add(step, 1))
        session.run(flush)
    found = [
        (event.step, value.tag, value.simple_value)
        for path in tmp_path.iterdir()
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
    ]
    assert found == [(0, "step_twice", 0.0), (2, "step_twice", 4.0)]


def test_lookup_table_of_contrib_looks_up():
    """A table of `tf.contrib.lookup` gives places, and a default."""
    lookup = contrib_module("tensorflow.contrib.lookup")
    strings = lookup.index_table_from_tensor(tf.constant(["a", "b"]), default_value=-1)
    numbers = lookup.HashTable(lookup.KeyValueTensorInitializer(["x", "y"], [5, 6]), 0)
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run(strings.lookup(tf.constant(["b", "z"]))).tolist() == [1, -1]
        assert session.run(numbers.lookup(tf.constant(["y", "z"]))).tolist() == [6, 0]


def test_train_op_of_contrib_training_trains():
    """`tf.contrib.training.create_train_op` and `tf.contrib.losses` work together."""
    module = contrib_module("tensorflow.contrib.training")
    weight = tf.get_variable("weight", [], initializer=tf.constant_initializer(4.0))
    contrib_module("tensorflow.contrib.losses").add_loss(tf.square(weight))
    loss = contrib_module("tensorflow.contrib.losses").get_total_loss()
    step = contrib_module("tensorflow.contrib.framework").get_or_create_global_step()
    train = module.create_train_op(loss, tf.train.GradientDescentOptimizer(0.25), step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(loss) == 16.0
        for _ in range(3):  # the gradient of w^2 is 2 w: each step halves it
            session.run(train)
        np.testing.assert_allclose(session.run([weight, step]), [0.5, 3])
