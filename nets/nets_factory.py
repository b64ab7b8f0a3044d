"""The table of networks by name.

>>> from nets import nets_factory
>>> network_fn = nets_factory.get_network_fn("lenet", num_classes=10)
>>> network_fn.default_image_size, network_fn.num_classes
(28, 10)
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

from model_deploy import slim
from nets import (
    alexnet,
    cifarnet,
    i3d,
    inception_resnet_v2,
    inception_v1,
    inception_v2,
    inception_v3,
    inception_v4,
    keras_networks,
    lenet,
    mnist_mlp,
    mobilenet_v1,
    overfeat,
    resnet_9,
    resnet_v1,
    resnet_v2,
    s3dg,
    text_lstm,
    vgg,
)
from nets.mobilenet import mobilenet_v2, mobilenet_v3
from nets.nasnet import nasnet, pnasnet
from nets.parts.network import Network, check_choice, check_num_classes

_IMAGES: tuple[dict[str, Network], ...] = (
    alexnet.NETWORKS,
    cifarnet.NETWORKS,
    i3d.NETWORKS,
    inception_resnet_v2.NETWORKS,
    inception_v1.NETWORKS,
    inception_v2.NETWORKS,
    inception_v3.NETWORKS,
    inception_v4.NETWORKS,
    lenet.NETWORKS,
    mnist_mlp.NETWORKS,
    mobilenet_v1.NETWORKS,
    mobilenet_v2.NETWORKS,
    mobilenet_v3.NETWORKS,
    nasnet.NETWORKS,
    overfeat.NETWORKS,
    pnasnet.NETWORKS,
    resnet_9.NETWORKS,
    resnet_v1.NETWORKS,
    resnet_v2.NETWORKS,
    s3dg.NETWORKS,
    vgg.NETWORKS,
)
_TEXTS = (text_lstm.NETWORKS,)
# Networks whose settings, their `config`, say in which layout they compute.
_SETTINGS = {**nasnet.SETTINGS, **pnasnet.SETTINGS}
_Functions = dict[str, Callable[..., Any]]


def _maps(families: Iterable[dict[str, Network]]) -> tuple[_Functions, _Functions]:
    """Returns name -> network and name -> arg scope."""
    networks = {name: network for family in families for name, network in family.items()}
    return (
        {name: network.function for name, network in networks.items()},
        {name: network.arg_scope for name, network in networks.items()},
    )


# Networks of images and videos only: programs build all of them on images.
networks_map, arg_scopes_map = _maps(_IMAGES)
text_networks_map, text_arg_scopes_map = _maps(_TEXTS)


def network_names() -> list[str]:
    """Returns the names of the networks here: those of images and videos, then those of texts."""
    return [*networks_map, *text_networks_map]


def all_network_names() -> list[str]:
    """Returns the names that `get_network` knows: also the `keras/...` of `keras.applications`."""
    return [*network_names(), *keras_networks.names()]


def check_network_name(field: str, name: str) -> None:
    """Checks a name that is given for a network, `keras/...` included.

    Args:
      field: what the name is called where it was given.
      name: the name.

    Raises:
      ValueError: naming the field and all networks that there are, if it is none of them.
    """
    if name not in network_names():  # else Keras is not imported
        check_choice(field, name, all_network_names())


def get_network(name: str) -> Network:
    """Returns the function of the network called `name` and that of its arg scope.

    Raises:
      ValueError: if there is no such network.
    """
    if name.startswith(keras_networks.PREFIX):
        return keras_networks.get_network(name)
    check_network_name("name", name)
    if name in networks_map:
        return Network(networks_map[name], arg_scopes_map[name])
    return Network(text_networks_map[name], text_arg_scopes_map[name])


def get_network_fn(
    name: str, num_classes: int | None, weight_decay: float = 0.0, is_training: bool = False
) -> Callable[..., Any]:
    """Returns the network called `name`, as a function of images, or of tokens.

    Args:
      name: a key of `networks_map` or `text_networks_map`, or `keras/` and the name of a
        classifier of `keras.applications`.
      num_classes: width of the logits; 0 or None returns the features before them.
      weight_decay: factor of the L2 losses; 0.0 adds none.
      is_training: whether dropout is active and batch normalization uses the batch.

    Returns:
      `network_fn(images, **keywords)`, which returns `(logits, end_points)` and calls the
      network with these keywords under its arg scope. Attributes: `default_image_size`,
      `num_classes` as given, and `settings`: `settings()` returns what the network takes as
      `config`, whose `data_format` says in which layout it computes, and is None for a network
      whose layers name the axes of NHWC.

    Raises:
      ValueError: if there is no such network, or `num_classes` is negative.
    """
    function, arg_scope = get_network(name)
    check_num_classes(num_classes)

    @functools.wraps(function)
    def network_fn(images: Any, **keywords: Any) -> Any:
        with slim.arg_scope(arg_scope(weight_decay=weight_decay)):
            return function(images, num_classes=num_classes, is_training=is_training, **keywords)

    network_fn.default_image_size = function.default_image_size  # type: ignore[attr-defined]
    network_fn.num_classes = num_classes  # type: ignore[attr-defined]
    network_fn.settings = _SETTINGS.get(name)  # type: ignore[attr-defined]
    return network_fn
