"""Runs each conformance test over every network of `nets_factory`.

A test that asks for `network_name` gets each name in turn; one that asks for `reference_name`
each name that has reference numbers; a file leaves out those that it lists as `TWINS`. All tests
of one network in one file run one after the other in one process (`--dist loadfile`), because they
share its graph.
"""

import pytest
import tensorflow.compat.v1 as tf

from nets import nets_factory
from tests.nets import reference

# Networks whose tests take no more than a few seconds each.
_QUICK = {"cifarnet", "lenet", "mnist_mlp", "resnet_9_small", "text_lstm"}


@pytest.fixture(autouse=True, scope="module")
def compare_by_identity():
    """Makes variables compare by identity at once; in graph mode they do so in the end anyway.

    Slim asks whether a variable is in a list for every variable that it makes: building a network
    with a thousand of them takes a third of the time.
    """
    was_by_value = tf.Tensor._USE_EQUALITY
    tf.disable_tensor_equality()
    yield
    if was_by_value:
        tf.enable_tensor_equality()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrizes over the table of networks."""
    tables = {
        "network_name": nets_factory.network_names(),
        "reference_name": [name for name in nets_factory.networks_map if name in reference.names()],
    }
    for argument, names in tables.items():
        if argument in metafunc.fixturenames:
            twins = getattr(metafunc.module, "TWINS", {})
            cases = [_case(name) for name in names if name not in twins]
            metafunc.parametrize(argument, cases, scope="module")


def _case(name: str) -> object:
    marks = [] if name in _QUICK else [pytest.mark.slow]
    return pytest.param(name, marks=marks, id=name)
