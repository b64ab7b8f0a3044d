"""Runs each conformance test over every network of `nets_factory`.

A test that asks for `network_name` gets each name in turn; one that asks for `reference_name`
each name that has reference numbers. All tests of one network in one file run one after the other
in one process (`--dist loadfile`), because they share its graph. With `--v1` some networks run
that have all kinds of layers between them, and what is of other code than that.
"""

import gc
import pathlib

import pytest
import tensorflow.compat.v1 as tf

from nets import nets_factory
from tests.nets import reference
from tests.nets.few_blocks import shorten

# Networks whose tests take no more than a few seconds each.
_QUICK = {"cifarnet", "lenet", "mnist_mlp", "resnet_9_small", "text_lstm"}
_OF_V1 = {"inception_v1", "mobilenet_v3_small", "resnet_v1_50", *_QUICK}
# Loops, random numbers, reference variables, sessions of Keras: other code with `--v1`.
_BOTH_MODES = {"test_generators", "test_keras_networks", "test_own_networks"}


@pytest.fixture(autouse=True, scope="module")
def compare_by_identity():
    """Makes variables compare by identity at once; in graph mode they do so in the end anyway.

    Slim asks whether a variable is in a list for every variable that it makes: building a network
    with a thousand of them takes a third of the time. Graphs of the module are freed at its end.
    """
    was_by_value = tf.Tensor._USE_EQUALITY
    tf.disable_tensor_equality()
    yield
    if was_by_value:
        tf.enable_tensor_equality()
    gc.collect()


@pytest.fixture(scope="module")
def few_blocks():
    """Deep networks have each of their blocks once or twice; see `tests/nets/few_blocks.py`."""
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrizes over the table of networks."""
    tables = {
        "network_name": nets_factory.network_names(),
        "reference_name": [name for name in nets_factory.networks_map if name in reference.names()],
    }
    for argument, names in tables.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, [_case(name) for name in names], scope="module")


def _case(name: str) -> object:
    marks = [] if name in _QUICK else [pytest.mark.slow]
    return pytest.param(name, marks=marks, id=name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is the same code in both modes."""
    for item in items:
        if pathlib.Path(__file__).parent in item.path.parents:
            parameters = item.callspec.params if hasattr(item, "callspec") else {}
            name = parameters.get("network_name", parameters.get("reference_name"))
            if name not in _OF_V1 and item.path.stem not in _BOTH_MODES:
                item.add_marker(pytest.mark.one_mode)
