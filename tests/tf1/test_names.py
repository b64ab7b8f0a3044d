"""What `import tensorflow` and what is below it mean to a program of TensorFlow 1."""

import functools
import importlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1 import names

pytestmark = pytest.mark.one_mode

# Imports that programs of TensorFlow 1 have: module -> names in it.
_IMPORTS = {
    "keras": "Input Model Sequential backend callbacks layers models optimizers utils __version__",
    "keras.applications.resnet50": "ResNet50 preprocess_input",
    "keras.backend": "clear_session get_session image_data_format set_session tensorflow_backend",
    "keras.backend.tensorflow_backend": "set_session",
    "keras.callbacks": "EarlyStopping ModelCheckpoint TensorBoard",
    "keras.datasets": "cifar10 mnist",
    "keras.engine": "InputSpec Layer Model topology",
    "keras.engine.topology": "InputSpec Layer get_source_inputs",
    "keras.initializers": "RandomNormal glorot_uniform",
    "keras.layers": "Activation Conv2D Dense LSTM MaxPooling2D concatenate core",
    "keras.layers.advanced_activations": "LeakyReLU PReLU",
    "keras.layers.convolutional": "Conv2D UpSampling2D ZeroPadding2D",
    "keras.layers.core": "Activation Dense Dropout Flatten Lambda Reshape",
    "keras.layers.merge": "Add add concatenate",
    "keras.layers.normalization": "BatchNormalization",
    "keras.layers.recurrent": "GRU LSTM",
    "keras.layers.wrappers": "Bidirectional TimeDistributed",
    "keras.models": "Model Sequential load_model model_from_json",
    "keras.objectives": "categorical_crossentropy",
    "keras.optimizers": "Adam SGD adam rmsprop",
    "keras.preprocessing.image": "ImageDataGenerator img_to_array load_img",
    "keras.preprocessing.sequence": "pad_sequences",
    "keras.preprocessing.text": "Tokenizer",
    "keras.regularizers": "l2",
    "keras.utils": "Sequence multi_gpu_model np_utils to_categorical",
    "keras.utils.generic_utils": "CustomObjectScope Progbar get_custom_objects",
    "keras.utils.np_utils": "to_categorical",
    "keras.utils.training_utils": "multi_gpu_model",
    "keras.utils.vis_utils": "plot_model",
    "tensorflow": "app flags gfile logging losses metrics python_io summary train Session VERSION",
    "tensorflow.compat.v1": "Session placeholder",
    "tensorflow.core.example.example_pb2": "Example",
    "tensorflow.core.framework.graph_pb2": "GraphDef",
    "tensorflow.core.protobuf.config_pb2": "ConfigProto",
    "tensorflow.examples.tutorials.mnist": "input_data",
    "tensorflow.examples.tutorials.mnist.input_data": "read_data_sets DataSet",
    "tensorflow.compat.v2": "compat estimator function io summary",
    "tensorflow.contrib.framework.nest": "flatten is_sequence",
    "tensorflow.contrib.keras.python.keras.engine": "Layer",
    "tensorflow.contrib.keras.python.keras.layers.core": "Dense",
    "tensorflow.contrib.nccl.python.ops": "nccl_ops",
    "tensorflow.contrib.rnn.python.ops": "core_rnn_cell",
    "tensorflow.contrib.seq2seq.python.ops.decoder": "Decoder _transpose_batch_time",
    "tensorflow.contrib.tfprof.model_analyzer": "FLOAT_OPS_OPTIONS Profiler print_model_analysis",
    "tensorflow.keras.layers": "Dense Input LSTM",
    "tensorflow.keras.models": "Model Sequential",
    "tensorflow.keras.utils": "multi_gpu_model to_categorical",
    "tensorflow.layers": "dense conv2d batch_normalization dropout flatten max_pooling2d Dense",
    "tensorflow.losses": "sigmoid_cross_entropy",
    "tensorflow.nn": "rnn_cell dynamic_rnn conv2d moments",
    "tensorflow.nn.rnn_cell": "BasicLSTMCell DropoutWrapper GRUCell LSTMStateTuple MultiRNNCell",
    "tensorflow.python.client": "device_lib session timeline",
    "tensorflow.python.framework": "dtypes function graph_util ops tensor_shape tensor_util",
    "tensorflow.python.framework.errors_impl": "NotFoundError",
    "tensorflow.python.framework.graph_util": "convert_variables_to_constants",
    "tensorflow.python.framework.ops": "Tensor Operation GraphKeys name_scope",
    "tensorflow.python.keras._impl.keras.backend": "set_learning_phase",
    "tensorflow.python.keras._impl.keras.layers": "Dense core pooling",
    "tensorflow.python.keras.layers": "Dense",
    "tensorflow.python.layers.core": "Dense",
    "tensorflow.python.layers.layers": "dense",
    "tensorflow.python.lib.io": "file_io tf_record",
    "tensorflow.python.ops": "array_ops control_flow_ops math_ops nn_ops rnn rnn_cell variables",
    "tensorflow.python.ops.control_flow_ops": "with_dependencies cond while_loop group",
    "tensorflow.python.ops.rnn_cell": "LSTMStateTuple",
    "tensorflow.python.ops.rnn_cell_impl": "BasicLSTMCell RNNCell LSTMStateTuple",
    "tensorflow.python.ops.variables": "Variable",
    "tensorflow.python.platform": "app flags gfile googletest tf_logging",
    "tensorflow.python.pywrap_tensorflow": "NewCheckpointReader",
    "tensorflow.python.saved_model": "builder signature_constants tag_constants",
    "tensorflow.python.summary": "summary",
    "tensorflow.python.tools": "freeze_graph inspect_checkpoint",
    "tensorflow.python.training": "moving_averages optimizer queue_runner saver session_run_hook",
    "tensorflow.python.tpu": "tpu_config tpu_estimator",
    "tensorflow.python.tpu.tpu_config": "RunConfig",
    "tensorflow.python.training.moving_averages": "assign_moving_average",
    "tensorflow.python.training.tracking": "base data_structures graph_view tracking util",
    "tensorflow.python.training.tracking.tracking": "AutoTrackable",
    "tensorflow.python.training.training_ops": "resource_apply_adam",
    "tensorflow.python.util": "deprecation nest",
    "tensorflow.python.util.nest": "is_sequence",
    "tensorflow.train": "Saver Supervisor SyncReplicasOptimizer NewCheckpointReader",
}


@pytest.mark.parametrize("name", _IMPORTS)
def test_imports_of_old_programs(name):
    """Modules are found by their old names and have what programs take from them."""
    module = names.find(name)
    assert [each for each in _IMPORTS[name].split() if not hasattr(module, each)] == []


def test_projector():
    """The embeddings that TensorBoard shows are described as in TensorFlow 1."""
    pytest.importorskip("tensorboard")
    projector = names.find("tensorflow.contrib.tensorboard.plugins").projector
    assert projector.ProjectorConfig().embeddings.add(tensor_name="a").tensor_name == "a"


@pytest.mark.parametrize("name", names._MOVED)
def test_providers_exist(name):
    """One of the modules that have what was in a moved one can be imported, if it is installed."""
    for provider in names._MOVED[name]:
        if provider.startswith("tensorboard"):
            pytest.importorskip("tensorboard")
        assert importlib.import_module(provider)


@pytest.mark.parametrize(
    "name", ["tensorflow.estimator.never", "tensorflow.python.never", "tensorflow.never"]
)
def test_modules_that_are_nowhere(name):
    """Importing one is an error that says so."""
    with pytest.raises(ImportError, match=r"tf\..* is (gone since|in no release of) TensorFlow"):
        names.find(name)


def test_folders_of_files_invent_no_files():
    """A name that a part never had is an error at the import, though files are folders."""
    folder = names.find("tensorflow.contrib.layers.python.layers")
    with pytest.raises(AttributeError, match=r"never is gone since TensorFlow 2\.0"):
        _ = folder.never


def test_dotted_imports_reach_each_module():
    """After `import a.b.c`, `a.b.c` is an attribute, also where no module lists it."""
    for name in (
        "tensorflow.examples.tutorials.mnist.input_data",
        "tensorflow.contrib.slim.python.slim.nets.resnet_utils",
    ):
        names.link(name)
        value = functools.reduce(getattr, name.split(".")[1:], names.root())
        assert value is names.find(name)


def test_layers_have_the_names_of_their_variables():
    """Checkpoints of `tf.layers` fit: `dense/kernel`, `conv2d/bias`, `batch_normalization/beta`."""
    layers = names.find("tensorflow.layers")
    images = layers.conv2d(tf.zeros([2, 8, 8, 3]), 4, 3, padding="same", activation=tf.nn.relu)
    images = layers.batch_normalization(layers.max_pooling2d(images, 2, 2), training=True)
    result = layers.dense(layers.flatten(images), 5)
    layers.dense(layers.dropout(result, 0.5, training=True), 5, name="last")
    assert sorted(variable.op.name for variable in tf.global_variables()) == [
        "batch_normalization/beta",
        "batch_normalization/gamma",
        "batch_normalization/moving_mean",
        "batch_normalization/moving_variance",
        "conv2d/bias",
        "conv2d/kernel",
        "dense/bias",
        "dense/kernel",
        "last/bias",
        "last/kernel",
    ]
    assert result.shape.as_list() == [2, 5]
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2


@pytest.mark.filterwarnings(r"ignore:`tf\.nn\.rnn_cell\.\w+` is deprecated:UserWarning")
def test_cells_have_the_names_of_their_variables():
    """Checkpoints of `tf.nn.rnn_cell` fit, and a cell computes what an LSTM does."""
    rnn_cell = names.root().nn.rnn_cell
    cells = rnn_cell.MultiRNNCell([rnn_cell.BasicLSTMCell(np.int64(2)), rnn_cell.GRUCell(3)])
    outputs, _ = tf.nn.dynamic_rnn(cells, tf.ones([1, 1, 2]), dtype=tf.float32)
    assert outputs.shape.as_list() == [1, 1, 3]
    assert sorted(variable.op.name for variable in tf.global_variables()) == [
        "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/bias",
        "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel",
        "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/bias",
        "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/kernel",
        "rnn/multi_rnn_cell/cell_1/gru_cell/gates/bias",
        "rnn/multi_rnn_cell/cell_1/gru_cell/gates/kernel",
    ]
    with tf.variable_scope("ones", initializer=tf.ones_initializer()):
        cell = rnn_cell.BasicLSTMCell(1, forget_bias=1.0)
        _, state = tf.nn.static_rnn(cell, [tf.ones([1, 2])], dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        [[[memory]], [[output]]] = session.run(state)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    # Each gate gets 1 + 1 from the input, and its bias is 0.
    assert memory == pytest.approx(sigmoid(2) * np.tanh(2), rel=1e-5)
    assert output == pytest.approx(sigmoid(2) * np.tanh(memory), rel=1e-5)


@pytest.mark.filterwarnings("ignore:.*set_learning_phase")  # tf-keras, of its own call
@pytest.mark.parametrize("module", ["tensorflow.keras", "tensorflow.python.keras"])
def test_estimators_of_keras_models(module, tmp_path):
    """`model_to_estimator` of both modules makes estimators whose checkpoints are a Saver's."""
    keras = names.find(module)
    model = keras.models.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile(tf.train.GradientDescentOptimizer(0.1), "mse")
    make = names.find(f"{module}.estimator").model_to_estimator
    assert keras.estimator.model_to_estimator is make
    trained = make(model, model_dir=str(tmp_path))
    trained.train(lambda: tf.data.Dataset.from_tensors(([[1.0, 2.0]], [[3.0]])), steps=1)
    assert trained.get_variable_value("dense/kernel").shape == (2, 1)


def test_graph_util_freezes():
    """`tensorflow.python.framework.graph_util` has what is in `tf.graph_util` now."""
    graph_util = names.find("tensorflow.python.framework.graph_util")
    variable = tf.get_variable("v", [], initializer=tf.constant_initializer(3.0))
    result = tf.identity(variable, name="result")
    with tf.Session() as session:
        session.run(variable.initializer)
        frozen = graph_util.convert_variables_to_constants(
            session, result.graph.as_graph_def(), ["result"]
        )
    assert "Const" in {node.op for node in frozen.node}
    assert not [node for node in frozen.node if "Var" in node.op]


def test_main_is_called_after_the_function():
    """`tf.app.run` of a program calls what the runner wants first, then `main`; later not."""
    calls = []
    with names.calling_before_main(lambda: calls.append("first")):
        with pytest.raises(SystemExit):
            names.root().app.run(main=lambda _: calls.append("main"), argv=["program"])
        assert names.root().app.flags is tf.app.flags
    assert calls == ["first", "main"]
    assert names.root().app.run is tf.app.run
