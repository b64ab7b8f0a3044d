"""Steps run where the graph asks for, op by op; on logical CPUs, and on GPUs with `--gpu`."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import gpus
from tests import devices, harness
from tests.goldens import GOLDENS, LogicalDevices, cpu_config

WAYS = {
    "together": {},
    "sums by clones": {"aggregate_on": "gpu"},
    "all_reduce": {"all_reduce": True},
    "accumulated": {"accumulate_steps": 2},
    "float16": {"precision": "float16"},
}
# The models of which each way has other ops.
CELLS = [
    *(("together", name) for name in GOLDENS),
    *(("sums by clones", name) for name in ("slim_mlp", "tied_embedding")),
    *(("all_reduce", name) for name in ("embedding", "tied_embedding", "batch_norm")),
    *(("accumulated", name) for name in ("embedding", "loop", "batch_norm")),
    *(("float16", name) for name in ("linear", "convolution", "tied_embedding", "loop")),
]
# What with the variables and loops of TensorFlow 1 is placed otherwise.
_IN_BOTH_MODES = (("together", "loop"), ("all_reduce", "tied_embedding"), ("accumulated", "loop"))
# On the CPU these compute nothing that belongs to a clone: they read and look up variables that are
# there, gather gradients and update.
_TIED_TO_VARIABLES = ("Read", "Assign", "Resource", "Gather", "Apply", "Var")


def _placed(name, **options):
    """A golden model on two clones, and where its ops run."""
    config = LogicalDevices(num_clones=2, **options)
    run = harness.Replica(config, GOLDENS[name], lambda: tf.train.AdamOptimizer(0.1))
    with run.graph.as_default():
        return run, _partitions(run.model, config)


def _partitions(model, config):
    """Device of each node of a step, as TensorFlow has divided it; names are those of the graph."""
    proto = devices.session_config(config.num_clones)
    # The graph as it is: what TensorFlow makes of it has other names.
    proto.graph_options.rewrite_options.disable_meta_optimizer = True
    options = tf.RunOptions(output_partition_graphs=True)
    trace = tf.RunMetadata()
    with tf.Session(config=proto) as session:
        harness.start(session)
        session.run(model.train_op, options=options, run_metadata=trace)
    return {node.name: node.device for graph in trace.partition_graphs for node in graph.node}


def _kind_and_index(device):
    spec = tf.DeviceSpec.from_string(device)
    return spec.device_type, spec.device_index


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("way", "name"),
    [
        pytest.param(*cell, marks=[] if cell in _IN_BOTH_MODES else [pytest.mark.one_mode])
        for cell in CELLS
    ],
)
def test_no_op_is_moved(way, name):
    """Each op of a step runs on the device that it asks for, without soft placement.

    What asks for none is tied to a variable, and is beside it.
    """
    run, placed = _placed(name, **WAYS[way])
    config = run.config
    asked = {op.name: op for op in run.graph.get_operations()}
    ran = [asked[name] for name in placed if name in asked]
    assert len(ran) > 30
    moved = [
        (op.name, op.device, placed[op.name])
        for op in ran
        if op.device and _kind_and_index(op.device) != _kind_and_index(placed[op.name])
    ]
    assert moved == []
    free = {op.type for op in ran if not op.device}
    assert all(any(part in each for part in _TIED_TO_VARIABLES) for each in free), free
    used = {_kind_and_index(device) for device in placed.values()}
    assert {_kind_and_index(config.clone_device(i)) for i in range(2)} <= used


@pytest.mark.needs_gpu
@pytest.mark.parametrize("name", list(GOLDENS))
def test_nothing_of_a_clone_computes_on_the_cpu(name):
    """On GPUs, what the CPU does in a clone's scope is to read variables."""
    run, placed = _placed(name)
    on_cpu = {
        run.graph.get_operation_by_name(name).type
        for name, device in placed.items()
        if name.startswith("clone_") and not gpus.is_gpu(device)
        if not name.rpartition("/")[2].startswith("_")
    }
    assert all(any(part in each for part in _TIED_TO_VARIABLES) for each in on_cpu), on_cpu


@pytest.mark.needs_gpu
def test_memory_of_a_gpu_is_used_up():
    """What does not fit on a GPU is an error that says what to try."""
    size = tf.placeholder_with_default([1 << 40], [1])
    with tf.device(devices.of_clone("/device:GPU:0")):
        too_much = tf.reduce_sum(tf.fill(size, 1.0))
    with (
        tf.Session(config=cpu_config(1)) as session,
        pytest.raises(MemoryError, match=r"a batch of 7 .*GPU:0.* try a smaller batch_size"),
        gpus.device_errors_explained(7),
    ):
        session.run(too_much)
