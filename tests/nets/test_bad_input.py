"""Every network rejects what it cannot take, before TensorFlow does."""

import inspect
import re

import pytest
import tensorflow.compat.v1 as tf

from nets import nets_factory
from nets.parts.network import Images, Tokens
from tests.nets import graphs, reference


@pytest.fixture
def function(network_name):
    """The network under test."""
    return nets_factory.get_network(network_name).function


@pytest.fixture
def inputs(network_name):
    """A good input for the network under test."""
    return graphs.sample(network_name)


def reject(network_name, images, message, num_classes=10, **keywords):
    """Asserts that the call fails with the message, by name and directly, and builds nothing."""
    before = len(tf.get_default_graph().get_operations())
    with pytest.raises(ValueError, match=message):
        nets_factory.get_network_fn(network_name, num_classes, is_training=True)(images, **keywords)
    with pytest.raises(ValueError, match=message):
        nets_factory.get_network(network_name).function(
            images, num_classes=num_classes, is_training=True, **keywords
        )
    assert len(tf.get_default_graph().get_operations()) == before


def first_argument(function):
    """Returns the name of a network's first argument."""
    return next(iter(inspect.signature(function).parameters))


def test_negative_num_classes(network_name, inputs):
    """A negative number of classes is named."""
    reject(network_name, inputs, r"num_classes must be .* at least 0 .*, got -1", num_classes=-1)


def test_fractional_num_classes(network_name, inputs):
    """A number of classes that is not whole is named."""
    reject(network_name, inputs, r"num_classes must be .* whole .*, got 2\.5", num_classes=2.5)


def test_wrong_rank(network_name, function, inputs):
    """An input of another rank is named with its shape."""
    message = rf"^{first_argument(function)} must have rank {inputs.shape.rank}.*, got shape \(10,"
    reject(network_name, tf.zeros([10] + [1] * inputs.shape.rank, inputs.dtype), message)


def test_wrong_channels(network_name, function, inputs):
    """A channel count that is neither grey nor RGB is named, an unknown one where any is taken."""
    if not isinstance(function.inputs, Images):
        pytest.skip("takes no images")
    channels = None if function.inputs.other_channels else 5
    images = tf.placeholder(tf.float32, [*inputs.shape.as_list()[:-1], channels])
    message = rf"^{first_argument(function)} must have .* channels, got {channels}"
    reject(network_name, images, message)


def test_too_small_an_image(network_name, function, inputs):
    """An image of one pixel less than the smallest is named with the least size."""
    if not isinstance(function.inputs, Images):
        pytest.skip("takes no images")
    defaults = {p.name: p.default for p in inspect.signature(function).parameters.values()}
    smallest = function.inputs.smallest_for(defaults)
    shape = inputs.shape.as_list()
    shape[-2] = smallest - 1
    got = re.escape(f"got shape {tuple(shape)}")
    message = rf"^{first_argument(function)} must be at least {smallest} pixels .*, {got}"
    reject(network_name, tf.zeros(shape), message)


def test_no_token(network_name, function):
    """A text without a token is named."""
    if not isinstance(function.inputs, Tokens):
        pytest.skip("takes no tokens")
    message = rf"^{first_argument(function)} must hold at least 1 token, got shape \(2, 0\)"
    reject(network_name, tf.zeros([2, 0], tf.int32), message)


def test_tokens_of_floats(network_name, function):
    """Token ids that are not whole numbers are named with their type."""
    if not isinstance(function.inputs, Tokens):
        pytest.skip("takes no tokens")
    message = rf"^{first_argument(function)} must be of an integer type, got float32"
    reject(network_name, tf.zeros([2, 3]), message)


def test_unknown_final_endpoint(network_name, function, inputs):
    """An unknown `final_endpoint` is named with those that there are."""
    keywords = set(inspect.signature(function).parameters)
    if network_name in reference.names():
        flags = reference.load(network_name)["flags"]
        keywords |= {key for key, _ in flags.get("forwarded_keywords", [])}
    if "final_endpoint" not in keywords:
        pytest.skip("has no such keyword")
    message = r"^final_endpoint must be one of .*, got 'Mixed_9z'"
    reject(network_name, inputs, message, final_endpoint="Mixed_9z")
