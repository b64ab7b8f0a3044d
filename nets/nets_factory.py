"""The table of networks by name.

>>> from nets import nets_factory
>>> network_fn = nets_factory.get_network_fn("lenet", num_classes=10)
>>> network_fn.default_image_size, network_fn.num_classes
(28, 10)
"""

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from model_deploy import slim
from nets import keras_names
from nets.parts.network import Network, check_choice, check_num_classes

# Family -> its networks, the names in `NETWORKS` of its module.  The module, and so TensorFlow, is
# imported when a network is asked for; names and their checks need neither.
_IMAGES: dict[str, tuple[str, ...]] = {
    "alexnet": ("alexnet_v2",),
    "cifarnet": ("cifarnet",),
    "i3d": ("i3d",),
    "inception_resnet_v2": ("inception_resnet_v2",),
    "inception_v1": ("inception_v1",),
    "inception_v2": ("inception_v2",),
    "inception_v3": ("inception_v3",),
    "inception_v4": ("inception_v4",),
    "lenet": ("lenet",),
    "mnist_mlp": ("mnist_mlp",),
    "mobilenet_v1": ("mobilenet_v1", "mobilenet_v1_075", "mobilenet_v1_050", "mobilenet_v1_025"),
    "mobilenet.mobilenet_v2": ("mobilenet_v2", "mobilenet_v2_140", "mobilenet_v2_035"),
    "mobilenet.mobilenet_v3": (
        *("mobilenet_v3_small", "mobilenet_v3_large"),
        *("mobilenet_v3_small_minimalistic", "mobilenet_v3_large_minimalistic"),
        *("mobilenet_edgetpu", "mobilenet_edgetpu_075"),
    ),
    "nasnet.nasnet": ("nasnet_cifar", "nasnet_mobile", "nasnet_large"),
    "overfeat": ("overfeat",),
    "nasnet.pnasnet": ("pnasnet_mobile", "pnasnet_large"),
    "resnet_9": ("resnet_9", "resnet_9_small"),
    "resnet_v1": ("resnet_v1_50", "resnet_v1_101", "resnet_v1_152", "resnet_v1_200"),
    "resnet_v2": ("resnet_v2_50", "resnet_v2_101", "resnet_v2_152", "resnet_v2_200"),
    "s3dg": ("s3dg",),
    "vgg": ("vgg_a", "vgg_16", "vgg_19"),
}
_TEXTS: dict[str, tuple[str, ...]] = {"text_lstm": ("text_lstm",)}
# Families of networks whose settings, their `config`, say in which layout they compute.
_WITH_SETTINGS = ("nasnet.nasnet", "nasnet.pnasnet")

# Networks of images and videos only: programs build all of them on images.
networks_map: dict[str, Callable[..., Any]]
arg_scopes_map: dict[str, Callable[..., Any]]
text_networks_map: dict[str, Callable[..., Any]]
text_arg_scopes_map: dict[str, Callable[..., Any]]
_MAPS: dict[str, tuple[dict[str, tuple[str, ...]], str]] = {
    "networks_map": (_IMAGES, "function"),
    "arg_scopes_map": (_IMAGES, "arg_scope"),
    "text_networks_map": (_TEXTS, "function"),
    "text_arg_scopes_map": (_TEXTS, "arg_scope"),
}


def __getattr__(name: str) -> Any:
    """Makes one of `_MAPS` when it is first asked for; programs may add networks to it."""
    if name not in _MAPS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    families, part = _MAPS[name]
    made = {
        network: getattr(_module(family).NETWORKS[network], part)
        for family, networks in families.items()
        for network in networks
    }
    globals()[name] = made
    return made


def _map(name: str) -> dict[str, Callable[..., Any]]:
    made: dict[str, Callable[..., Any]] = getattr(sys.modules[__name__], name)
    return made


def _module(family: str) -> Any:
    return importlib.import_module(f"nets.{family}")


def _names(name: str) -> list[str]:
    """Names in one of `_MAPS`, which is not made for it."""
    table = [network for networks in _MAPS[name][0].values() for network in networks]
    return list(globals().get(name, table))


def network_names() -> list[str]:
    """Returns the names of the networks here: those of images and videos, then those of texts."""
    return [*_names("networks_map"), *_names("text_networks_map")]


def all_network_names() -> list[str]:
    """Returns the names that `get_network` knows: also the `keras/...` of `keras.applications`."""
    return [*network_names(), *keras_names.names()]


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
    if name.startswith(keras_names.PREFIX):
        return _keras_network(name)
    check_network_name("name", name)
    if name in _map("networks_map"):
        return Network(_map("networks_map")[name], _map("arg_scopes_map")[name])
    return Network(_map("text_networks_map")[name], _map("text_arg_scopes_map")[name])


def built_keras_model() -> Any:
    """Returns the Keras model of the network that was built last in the default graph.

    Raises:
      ValueError: if none was.
    """
    return _module("keras_networks").built_model()


def _keras_network(name: str) -> Network:
    found: Network = _module("keras_networks").get_network(name)
    return found


def _settings(name: str) -> Any:
    """Function that returns the settings of a network; None for a network without any."""
    families = [family for family in _WITH_SETTINGS if name in _IMAGES[family]]
    return _module(families[0]).SETTINGS.get(name) if families else None


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
    network_fn.settings = _settings(name)  # type: ignore[attr-defined]
    return network_fn
