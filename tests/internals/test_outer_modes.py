"""Comparing variables faster gives TensorFlow's own answers, and enters no graph to find them."""

import contextlib
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops

from model_deploy import internals, slim

pytestmark = pytest.mark.one_mode


def _in_function(ask):
    answers = []

    @tf.function
    def asks():
        answers.append(ask())

    asks()
    return answers.pop()


def _in_graph(ask):
    with tf.Graph().as_default():
        return ask()


_PLACES = {
    "in a graph": _in_graph,
    "in a graph within a graph": lambda ask: _in_graph(lambda: _in_graph(ask)),
    "in a function of a graph": lambda ask: _in_graph(lambda: _in_function(ask)),
    "in a graph within a function": lambda ask: _in_graph(
        lambda: _in_function(lambda: _in_graph(ask))
    ),
    "out of a function of a graph": lambda ask: _in_graph(lambda: _in_function(_lifted(ask))),
    "by default": lambda ask: ask(),
    "in a function": _in_function,
    "out of a function": lambda ask: _in_function(_lifted(ask)),
}


def _lifted(ask):
    def lifted():
        with tf.init_scope():
            return ask()

    return lifted


def _answers():
    """Of each place: TensorFlow's answer, and the faster one."""

    def ask():
        with internals.comparing_variables_faster():
            faster = ops.executing_eagerly_outside_functions()
        return ops.executing_eagerly_outside_functions(), faster

    return {name: place(ask) for name, place in _PLACES.items()}


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_answers(mode):
    """In each place the answer is TensorFlow's, in a process that is eager and in one of graphs."""
    program = "from tests.internals import test_outer_modes as t; print(t._answers())"
    if mode == "graph":
        program = "import tensorflow.compat.v1 as tf; tf.disable_eager_execution(); " + program
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    is_eager = {
        name: mode == "eager" and not name.endswith("a graph") and "graph within" not in name
        for name in _PLACES
    }
    assert done.stdout.decode() == f"{ {name: (is_, is_) for name, is_ in is_eager.items()} }\n"


@pytest.mark.parametrize("block", [contextlib.nullcontext, internals.comparing_variables_faster])
def test_graphs_entered(block, monkeypatch):
    """With 50 variables more a layer enters no graph more often; without the block it does."""
    monkeypatch.setattr(tf.Tensor, "_USE_EQUALITY", True)  # as in programs by default
    entered = []
    as_default = tf.Graph.as_default
    monkeypatch.setattr(
        tf.Graph, "as_default", lambda graph: entered.append(graph) or as_default(graph)
    )

    def of_a_layer():
        entered.clear()
        with block():
            slim.fully_connected(tf.zeros([1, 2]), 3, biases_initializer=None)
        return len(entered)

    of_a_layer()
    before = of_a_layer()
    for number in range(50):
        tf.get_variable(f"other_{number}", [])
    more = of_a_layer() - before
    assert (more >= 50) if block is contextlib.nullcontext else (more == 0)
