"""The table of networks by name."""

import pytest
import tensorflow.compat.v1 as tf

from nets import nets_factory
from nets.parts.network import Images
from tests.nets import graphs, reference

# Networks with no counterpart in the reference; `test_own_networks.py` proves them.
_OWN = {"mnist_mlp", "resnet_9", "resnet_9_small"}


def test_every_reference_network_is_registered():
    """The table holds the networks of the reference and the project's own, no other."""
    assert set(nets_factory.networks_map) == {*reference.names(), *_OWN}
    assert nets_factory.arg_scopes_map.keys() == nets_factory.networks_map.keys()


def test_networks_map_is_for_images():
    """Programs feed images to all of `networks_map`; networks of texts have their own table."""
    for function in nets_factory.networks_map.values():
        assert isinstance(function.inputs, Images)
    assert list(nets_factory.text_networks_map) == ["text_lstm"]
    assert nets_factory.text_arg_scopes_map.keys() == nets_factory.text_networks_map.keys()
    assert nets_factory.network_names() == [*nets_factory.networks_map, "text_lstm"]
    assert nets_factory.get_network_fn("text_lstm", 2).default_image_size == 100


def test_added_network():
    """A program may add a network to the tables, under a name of its own."""
    function, arg_scope = nets_factory.get_network("lenet")
    nets_factory.networks_map["mine"] = function
    nets_factory.arg_scopes_map["mine"] = arg_scope
    try:
        logits, _ = nets_factory.get_network_fn("mine", 3)(graphs.sample("lenet"))
    finally:
        del nets_factory.networks_map["mine"], nets_factory.arg_scopes_map["mine"]
    assert logits.shape.as_list() == [2, 3]


def test_default_image_size():
    """The size that a network was designed for is the reference's."""
    for name in reference.names():
        network_fn = nets_factory.get_network_fn(name, 10)
        assert network_fn.default_image_size == reference.load(name)["default_image_size"]


def test_settings_of_the_function():
    """The function knows for how many classes it was made. Weight decay adds L2 losses, of which
    there are none by default, and training mode adds dropout.
    """
    assert nets_factory.get_network_fn("lenet", None).num_classes is None
    network_fn = nets_factory.get_network_fn("lenet", 7)
    assert network_fn.num_classes == 7
    network_fn(graphs.sample("lenet"))
    assert tf.losses.get_regularization_losses() == []
    network_fn = nets_factory.get_network_fn("lenet", 10, weight_decay=0.5, is_training=True)
    with tf.Graph().as_default() as graph:
        network_fn(graphs.sample("lenet"))
        assert len(tf.losses.get_regularization_losses()) == 4
        assert any("dropout3/" in op.name for op in graph.get_operations())


def test_unknown_name():
    """An unknown name is answered with the names that there are."""
    with pytest.raises(ValueError, match=r"^name must be one of .*lenet.*, got 'lenet_9'"):
        nets_factory.get_network_fn("lenet_9", 10)


def test_networks_say_whether_they_have_layouts():
    """NASNet and PNASNet have settings with a layout, and others are written for NHWC."""
    found = {
        name: nets_factory.get_network_fn(name, 10).settings for name in nets_factory.networks_map
    }
    with_layouts = {name for name, settings in found.items() if settings is not None}
    assert with_layouts == {name for name in found if "nasnet" in name}
    assert {found[name]().data_format for name in with_layouts} == {"NHWC"}
