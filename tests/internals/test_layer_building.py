"""Building layers faster gives TensorFlow's own answers and classes, with less work."""

import contextlib
import subprocess
import sys

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.keras.engine import base_layer, base_layer_v1
from tf_keras.src.engine import base_layer as tf_keras_layer
from tf_keras.src.engine import base_layer_v1 as tf_keras_layer_v1

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


def _is_eager(name):
    return not name.endswith("a graph") and "graph within" not in name


def _answers(one, other):
    return [hash(one) == id(one), one == one, one == other, one != other]  # noqa: PLR0124


def check(mode):
    """Asks in each place about variables of a graph, and in an eager program about others."""
    with tf.Graph().as_default():
        pair = [tf.get_variable(name, [], use_resource=True) for name in ("one", "other")]
    for name, place in _PLACES.items():
        with internals.building_layers_faster():
            assert place(lambda: _answers(*pair)) == [True, True, False, True], name
        if mode == "graph" or not _is_eager(name):
            assert place(lambda: _answers(*pair)) == [True, True, False, True], name
    if mode == "graph":
        return
    one, other = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 3.0])
    with internals.building_layers_faster():
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)
        assert (one == other).numpy().tolist() == [True, False]
        assert (one != other).numpy().tolist() == [False, True]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_answers(mode):
    """In each place a variable of a graph is what it is, which is TensorFlow's answer in graphs;
    variables of an eager program are compared by their values, and not hashed.
    """
    if mode == "graph":  # as this process is
        check(mode)
        return
    program = f"from tests.internals import test_layer_building as t; t.check({mode!r})"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("block", [contextlib.nullcontext, internals.building_layers_faster])
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


_MODULES = {
    "of TensorFlow": (base_layer, base_layer_v1),
    "of tf-keras": (tf_keras_layer, tf_keras_layer_v1),
}


def _class_of_layers(base):
    """A class two below `base`, and a list that grows when bases in it are set."""
    changes = []

    class Counted(type(base)):
        def mro(cls):
            changes.append(cls)
            return super().mro()

    return Counted("Lower", (Counted("Upper", (base,), {}),), {}), changes


@pytest.mark.parametrize("kind", _MODULES)
def test_bases_of_layers(kind, monkeypatch):
    """A class has the base of the mode in which a layer of it is made; in the block, bases are set
    only where they differ, and without it for each layer.
    """
    module, module_v1 = _MODULES[kind]
    layer, changes = _class_of_layers(module.Layer)

    def bases_are_set(block, is_eager):
        monkeypatch.setattr(module.version_utils, "should_use_v2", lambda: is_eager)
        changes.clear()
        with block():
            assert isinstance(layer(), layer)
        assert issubclass(layer, module_v1.Layer) is not is_eager
        return bool(changes)

    block = internals.building_layers_faster
    for is_eager in (False, True, False):
        assert bases_are_set(block, is_eager)
        assert not bases_are_set(block, is_eager)
        assert bases_are_set(contextlib.nullcontext, is_eager)


_FIRST_IMPORT = """
import sys
from model_deploy import internals
import tensorflow.compat.v1 as tf

name = "tf_keras.src.utils.version_utils"
with internals.building_layers_faster():
    assert name not in sys.modules
    import tf_keras
    replaced = sys.modules[name].swap_class
assert sys.modules[name].swap_class is replaced.__wrapped__
"""


def test_keras_imported_in_the_block():
    """tf-keras that is first imported in the block is replaced, and after it as it was."""
    subprocess.run([sys.executable, "-c", _FIRST_IMPORT], check=True)
