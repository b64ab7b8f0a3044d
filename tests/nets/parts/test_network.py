"""The checks that all networks share, and how a table's variants are made."""

import inspect

import pytest
import tensorflow.compat.v1 as tf

from nets.parts import network


@network.takes(network.Images(size=8, smallest=lambda arguments: 4 if arguments["pool"] else 2))
def tiny(images, num_classes=None, pool=False):
    """Returns its arguments, for images of at least 2 pixels, or 4 with `pool`."""
    return images, num_classes, pool


@network.takes(network.Images(size=8, other_channels=True))
def colourful(images):
    """Returns images of any number of channels."""
    return images


def test_checked_function():
    """The decorator keeps name, documentation and signature, and adds the size. What the rules
    allow arrives as it was given; a height or width that is unknown yet is not judged.
    """
    assert tiny.__name__ == "tiny"
    assert tiny.default_image_size == 8
    assert list(inspect.signature(tiny).parameters) == ["images", "num_classes", "pool"]
    images = tf.zeros([1, 2, 5, 3])
    assert tiny(images, 7) == (images, 7, False)
    images = tf.placeholder(tf.float32, [None, None, None, 1])
    assert tiny(images)[0] is images


@pytest.mark.parametrize(
    ("shape", "keywords", "message"),
    [
        (None, {}, r"images must have rank 4, got shape <unknown>"),
        ([1, 2, 2, 4], {}, r"images must have 1 or 3 channels, got 4 in \(1, 2, 2, 4\)"),
        ([1, 2, 2, None], {}, "images must have 1 or 3 channels, got None"),
        ([1, 9, 1, 3], {}, "images must be at least 2 pixels high and wide"),
        ([1, 9, 3, 3], {"pool": True}, "images must be at least 4 pixels"),
    ],
)
def test_bad_arguments(shape, keywords, message):
    """What the rules forbid is named with the rule and the value."""
    with pytest.raises(ValueError, match=f"^{message}"):
        tiny(tf.placeholder(tf.float32, shape), **keywords)


def test_any_number_of_channels():
    """Where any number of channels will do it must be known all the same."""
    images = tf.zeros([1, 2, 2, 77])
    assert colourful(images) is images
    with pytest.raises(ValueError, match=r"^images must have a known number of channels, got None"):
        colourful(tf.placeholder(tf.float32, [1, 2, 2, None]))


def test_wrapped_partial():
    """A preset is a new default: visible in the signature, and to be overruled."""
    variant = network.wrapped_partial(tiny, pool=True)
    images = tf.zeros([1, 4, 4, 3])
    assert variant(images) == (images, None, True)
    assert variant(images, pool=False) == (images, None, False)
    assert inspect.signature(variant).parameters["pool"].default is True
    assert variant.default_image_size == 8


@pytest.mark.parametrize("value", [0, -1, 2.0, "3", None])
def test_check_at_least(value):
    """Only whole numbers of at least the least pass."""
    network.check_at_least("width", 1, 1)
    with pytest.raises(
        ValueError, match=f"^width must be a whole number of at least 1, got {value!r}"
    ):
        network.check_at_least("width", value, 1)
