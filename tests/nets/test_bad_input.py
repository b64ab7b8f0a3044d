"""Every network rejects what it cannot take, before TensorFlow does."""

import inspect
import re

import pytest
import tensorflow.compat.v1 as tf

from nets import nets_factory
from nets.parts.network import Images
from tests.nets import reference


def cases_of(name, function):
    """The bad calls of a network: what the message says, the input, other keywords."""
    inputs = function.inputs
    parameters = inspect.signature(function).parameters
    first, keywords = next(iter(parameters)), set(parameters)
    if name in reference.names():
        flags = reference.load(name)["flags"]
        keywords |= {key for key, _ in flags.get("forwarded_keywords", [])}
    if isinstance(inputs, Images):
        shape = [2, *[8] * (inputs.rank - 4), inputs.size, inputs.size, max(inputs.channels)]
        dtype, other = tf.float32, None if inputs.other_channels else 5
        smallest = inputs.smallest_for({p.name: p.default for p in parameters.values()})
        small = [*shape[:-2], smallest - 1, shape[-1]]
        got = re.escape(f"got shape {tuple(small)}")
        yield f"^{first} must have .* channels, got {other}", [*shape[:-1], other], {}
        yield f"^{first} must be at least {smallest} pixels .*, {got}", small, {}
    else:
        shape, dtype = [2, 5], tf.int64
        yield rf"^{first} must hold at least 1 token, got shape \(2, 0\)", [2, 0], {}
        floats = tf.placeholder(tf.float32, [2, 3])
        yield f"^{first} must be of an integer type, got float32", floats, {}
    rank = len(shape)
    message = rf"^{first} must have rank {rank}.*, got shape \(10,"
    yield message, tf.placeholder(dtype, [10] + [1] * rank), {}
    for count, rule in ((-1, "at least 0"), (2.5, "whole")):
        yield f"num_classes must be .* {rule} .*, got {count}", shape, {"num_classes": count}
    if "final_endpoint" in keywords:
        message = "^final_endpoint must be one of .*, got 'Mixed_9z'"
        yield message, shape, {"final_endpoint": "Mixed_9z"}


@pytest.mark.parametrize("name", nets_factory.network_names())
def test_bad_calls(name):
    """Number of classes, rank, channels, size, tokens and end points that there are not are named
    with what was got, by name and directly, and nothing is built.
    """
    function = nets_factory.get_network(name).function
    dtype = tf.float32 if isinstance(function.inputs, Images) else tf.int64
    for message, given, keywords in cases_of(name, function):
        images = tf.placeholder(dtype, given) if isinstance(given, list) else given
        before = len(tf.get_default_graph().get_operations())
        classes = keywords.pop("num_classes", 10)
        with pytest.raises(ValueError, match=message):
            nets_factory.get_network_fn(name, classes, is_training=True)(images, **keywords)
        with pytest.raises(ValueError, match=message):
            function(images, num_classes=classes, is_training=True, **keywords)
        assert len(tf.get_default_graph().get_operations()) == before
