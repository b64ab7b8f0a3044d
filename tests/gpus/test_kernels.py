"""What has no kernel on a GPU goes to the CPU, and nothing else does that computes.

TensorFlow's wheels for Linux know the kernels for GPUs without a GPU: graphs are built for GPUs
that do not exist, and the devices that they ask for are read.
"""

import re

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, gpus, internals
from tests import harness
from tests.goldens import GOLDENS

needs_gpu_kernels = pytest.mark.skipif(
    internals.gpu_kernels("MatMul") is None, reason="this TensorFlow was built without GPUs"
)
WAYS = {
    "together": {},
    "copied": {"copy_clones": True},
    "sums on GPUs": {"aggregate_on": "gpu"},
    "all_reduce": {"all_reduce": True},
    "accumulated": {"accumulate_steps": 2},
    "bfloat16": {"precision": "bfloat16"},
    "float16": {"precision": "float16"},
    "parameter servers": {"num_ps_tasks": 2, "num_replicas": 2},
    "batch norms of all clones": {"sync_batch_norm": True},
}
# The models of which each way has other ops.
CELLS = [
    *(("together", name) for name in GOLDENS),
    *(("copied", name) for name in ("convolution", "embedding", "loop")),
    *(("sums on GPUs", name) for name in ("slim_mlp", "tied_embedding")),
    *(("all_reduce", name) for name in ("embedding", "tied_embedding", "batch_norm")),
    *(("accumulated", name) for name in ("embedding", "loop", "batch_norm")),
    *(("bfloat16", name) for name in ("convolution", "embedding", "batch_norm")),
    *(("float16", name) for name in ("linear", "tied_embedding", "loop")),
    *(("parameter servers", name) for name in ("slim_mlp", "embedding")),
    ("batch norms of all clones", "batch_norm"),
]
# Where variables are on the CPU, so are reads of them, and of the rows that are looked up.
_READS = {"ReadVariableOp", "ResourceGather", "VariableV2", "Gather", "GatherV2", "Identity"}


def _deploy(name, **options):
    """A golden model on two GPUs that need not exist."""
    return harness.Replica(
        DeploymentConfig(num_clones=2, **options),
        GOLDENS[name],
        lambda: tf.train.AdamOptimizer(0.1),
    ).graph


def _check_placement(graph):
    """No op asks for a GPU that cannot run it; of the clones the CPU has reads of variables."""
    ops = graph.get_operations()
    on_gpus = [op for op in ops if gpus.is_gpu(op.device)]
    assert len(on_gpus) > 20
    assert [op.type for op in on_gpus if not gpus.has_gpu_kernel(op)] == []
    on_cpu = {
        op.type
        for op in ops
        if re.match(r"clone_\d/(?!.*(Adam|Initializer|Assign))", op.name)
        and op.device
        and not gpus.is_gpu(op.device)
        and op.outputs
        and op.outputs[0].dtype.is_floating
    }
    assert on_cpu <= _READS
    summaries = graph.get_collection(tf.GraphKeys.SUMMARIES)
    assert not any(gpus.is_gpu(each.op.device) for each in summaries)


@needs_gpu_kernels
@pytest.mark.one_mode
@pytest.mark.parametrize(("way", "name"), CELLS)
def test_clones_compute_on_their_gpus_what_can_run_there(way, name):
    """A golden model, whatever the way to train, is on GPUs but for what has no kernel there."""
    _check_placement(_deploy(name, **WAYS[way]))


@needs_gpu_kernels
@pytest.mark.parametrize("name", [name for name in GOLDENS if name != "loop"])
@pytest.mark.parametrize("variable_kind", ["reference"], indirect=True)
def test_reference_variables(name, variable_kind):
    """So is one of reference variables; loops of TensorFlow 1 have ops of their own."""
    _check_placement(_deploy(name))


@needs_gpu_kernels
@pytest.mark.parametrize("way", ["together", "copied", "all_reduce", "accumulated"])
def test_ops_without_a_kernel_go_to_the_cpu(way, graph):
    """Strings, tables and summaries in `model_fn` are on the worker's CPU, in copies as well."""

    def model_fn(batches):
        features = next(batches)
        words = tf.as_string(features, name="words")
        lengths = tf.strings.length(words, name="lengths")
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        product = tf.multiply(weight, tf.cast(lengths, tf.float32), name="product")
        tf.summary.histogram("products", product)
        tf.losses.add_loss(tf.reduce_sum(product))

    config = DeploymentConfig(num_clones=2, **WAYS[way])
    batches = (tf.constant([1.0, 2.0]) for _ in range(config.batches_per_step))
    deploy(config, model_fn, [batches], optimizer=harness.sgd())
    for i in range(2):
        scope = config.part_scope(i, 0)
        devices = {
            name: graph.get_operation_by_name(f"{scope}/{name}").device
            for name in ("words", "lengths", "products", "product")
        }
        cpu = "/device:CPU:0"
        assert devices == {
            "words": cpu,
            "lengths": cpu,
            "products": cpu,
            "product": f"/device:GPU:{i}",
        }


@needs_gpu_kernels
def test_a_gpu_that_model_fn_names_is_kept(graph):
    """Where `model_fn` names a GPU the op asks for that one, which TensorFlow will refuse."""

    def model_fn():
        with tf.device("/device:GPU:3"):
            tf.as_string(1.0, name="words")

    deploy(DeploymentConfig(), model_fn=lambda: [model_fn(), tf.losses.add_loss(tf.constant(1.0))])
    assert graph.get_operation_by_name("words").device == "/device:GPU:3"


@needs_gpu_kernels
def test_stages_on_gpus(graph):
    """A stage's device is for what can run there: the rest is on the worker's CPU."""
    config = DeploymentConfig(devices_per_clone=2)

    def model_fn():
        with tf.device(config.stage_device(0, 1)):
            tf.as_string(1.0, name="words")
            tf.losses.add_loss(tf.exp(1.0, name="number"))

    deploy(config, model_fn)
    assert graph.get_operation_by_name("words").device == "/device:CPU:0"
    assert graph.get_operation_by_name("number").device == "/device:GPU:1"


@needs_gpu_kernels
@pytest.mark.not_v1("the body of a loop of TensorFlow 1 is no function")
def test_ops_of_functions_are_placed(graph):
    """The body of a loop is placed op by op, too."""

    def model_fn():
        def body(i, text):
            return i + 1, tf.strings.join([text, tf.as_string(i)])

        tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), tf.constant("")))
        tf.losses.add_loss(tf.constant(1.0))

    deploy(DeploymentConfig(num_clones=2), model_fn)
    functions = graph.as_graph_def().library.function
    devices = {
        node.op: node.device
        for function in functions
        for node in function.node_def
        if node.op in ("StringJoin", "AsString")
    }
    assert devices == dict.fromkeys(["StringJoin", "AsString"], "/device:CPU:0")


@needs_gpu_kernels
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda: tf.add(1.0, 2.0), True, id="float32"),
        pytest.param(lambda: tf.add(1, 2), True, id="int32, in the memory of the CPU"),
        pytest.param(lambda: tf.add("a", "b"), False, id="strings"),
        pytest.param(lambda: tf.matmul([[1]], [[1]]), False, id="a product of integers"),
        pytest.param(tf.timestamp, False, id="clock"),
    ],
)
def test_kernels_are_those_of_the_types(make, expected):
    """Whether there is a kernel depends on the op's type and on that of its values."""
    assert gpus.has_gpu_kernel(make().op) == expected


def test_other_devices_stay_as_they_are():
    """Only what is placed on a GPU is looked at."""
    assert gpus.placing("/device:CPU:1") == "/device:CPU:1"
    assert gpus.cpu_beside("/job:worker/task:2/device:GPU:3") == "/job:worker/task:2/device:CPU:0"
