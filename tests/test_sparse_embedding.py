"""A large embedding is never made dense, on any number of clones."""

import pytest
import tensorflow.compat.v1 as tf

from benchmarks.sparse_embedding import measure_in_process
from model_deploy import deploy
from tests.goldens import LogicalDevices

ROWS, WIDTH = 1_000_000, 64


def _model_fn():
    table = tf.get_variable("table", [ROWS, WIDTH], initializer=tf.zeros_initializer())
    words = tf.random_uniform([8, 20], 0, ROWS, tf.int32)
    tf.losses.mean_squared_error(tf.ones([8, 20, WIDTH]), tf.nn.embedding_lookup(table, words))


@pytest.mark.parametrize("clip_norm", [None, 1.0], ids=["plain", "clipped"])
@pytest.mark.parametrize("optimizer", ["GradientDescent", "Momentum", "Adagrad"])
def test_no_dense_gradient_in_the_graph(optimizer, clip_norm, variable_kind, graph):
    """Only variables, their start values and their updates have the table's shape."""
    make = getattr(tf.train, f"{optimizer}Optimizer")
    deploy(
        LogicalDevices(num_clones=2),
        _model_fn,
        optimizer=make(0.1, 0.9) if optimizer == "Momentum" else make(0.1),
        clip_norm=clip_norm,
        summarize_gradients=True,
    )
    full_size = {
        op.type
        for op in graph.get_operations()
        for tensor in op.outputs
        if tensor.shape.rank == 2 and tensor.shape.as_list() == [ROWS, WIDTH]
    }
    assert full_size <= {
        "VariableV2",  # the variable; below: read, start value, assignment of it, update in place
        "Identity",
        "ReadVariableOp",
        "Fill",
        "Const",
        "Assign",
        "ScatterSub",
        "SparseApplyMomentum",
        "SparseApplyAdagrad",
    }
    start_values_and_reads = [
        op.name
        for op in graph.get_operations()
        if op.type in ("Const", "Fill", "Identity")
        and op.outputs[0].shape.rank == 2
        and op.outputs[0].shape.as_list() == [ROWS, WIDTH]
    ]
    assert all("/Initializer/" in name or name.endswith("/read") for name in start_values_and_reads)


@pytest.mark.one_mode
@pytest.mark.slow
def test_a_second_clone_needs_no_more_memory():
    """Peak memory with two clones is at most 1.2 times that with one.

    A dense gradient would add 256 MB to about 1,000 MB.
    """
    one, two = (measure_in_process(clones, steps=20)["megabytes"] for clones in (1, 2))
    assert one > 256  # the table itself was there
    assert two <= 1.2 * one
