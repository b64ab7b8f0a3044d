"""`Preprocessing` families, and the tables of families by name and by network."""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

from model_deploy.checks import check_at_least

# Families of this package -> networks that use them.  Each is the `FAMILY` of the module of its
# name, which is imported, and with it TensorFlow, when the family is first asked for.  TF-Slim has
# none for alexnet_v2, overfeat, nasnet_cifar, the narrow mobilenet_v1 and mnist_mlp.
_BUILT_IN: dict[str, tuple[str, ...]] = {
    "cifarnet": (),
    "inception": (
        *(f"inception_v{version}" for version in (1, 2, 3, 4)),
        *("inception_resnet_v2", "mobilenet_v1", "mobilenet_v2", "mobilenet_v2_035"),
        *("mobilenet_v2_140", "mobilenet_v3_small", "mobilenet_v3_large"),
        *("mobilenet_v3_small_minimalistic", "mobilenet_v3_large_minimalistic"),
        *("mobilenet_edgetpu", "mobilenet_edgetpu_075", "nasnet_mobile", "nasnet_large"),
        *("pnasnet_mobile", "pnasnet_large"),
        *("mobilenet_v1_075", "mobilenet_v1_050", "mobilenet_v1_025"),
    ),
    "keras": (),
    "lenet": ("mnist_mlp",),
    "padded_crop": ("nasnet_cifar", "resnet_9", "resnet_9_small"),
    "vgg": (
        *(f"resnet_v{version}_{depth}" for version in (1, 2) for depth in (50, 101, 152, 200)),
        *("vgg_a", "vgg_16", "vgg_19", "alexnet_v2", "overfeat"),
    ),
}
_FAMILIES: dict[str, "Preprocessing"] = {}
_FAMILY_OF_NETWORK = {
    network: family for family, networks in _BUILT_IN.items() for network in networks
}


@dataclasses.dataclass(frozen=True)
class Preprocessing:
    """A preprocessing family: how images become the input of a network.

    Attributes:
      name: the name of the family.
      train: `train(images, height, width, seeds, **options)`; random augmentation must depend only
        on the seeds.  For shapes see `batched`.
      evaluate: `evaluate(images, height, width, **options)`, without randomness.
      batched: whether `images` are whole batches of images of one size, uint8 [n, h, w, c] with
        seeds int64 [n, 2]; if not, single images, uint8 [h, w, c] with a seed int64 [2].  The
        result is float32 of the same rank.
      crop_encoded: for families that crop first: `crop_encoded(contents, seed, channels)` decodes
        only the crop, uint8 [h, w, c], of a string []; `train` is then called with
        `crop_image=False`.  For `fast_decode` it takes a keyword `smallest`, (height, width), to
        which it may reduce the crop.
      takes_extra_augment: whether `train` takes a keyword `extra_augment`: None, or a function to
        apply to images after cropping and mirroring, before normalization.  It takes images of
        the family's rank with 1 or 3 channels, uint8 or float32 from 0 to 255, and returns uint8
        of the same shape.
      takes_padding: whether `train`, and `crop`, take a keyword `padding`, the pixels of padding on
        each side of the images that they crop.
      crop: for batched families that crop first, so that images that vary in size make a batch:
        `crop(image, height, width)` crops a single image, uint8 [h, w, c], to uint8 [height,
        width, c].  In training it also takes the keywords `draws` and `padding`, if the family has
        them, and `train` is then called with `crop_image=False`; `evaluate` is called as ever.
        Without `crop` images that vary in size come one by one, as batches of one.
      num_draws: how many random numbers `train` of single images, or `crop`, takes as a keyword
        `draws`: float32 [num_draws], from 0 to 1, which depend only on the image's seed.  They are
        drawn for many images at once, so that an image does not wait for the ops that draw them.
        By default `train` takes none.

    Raises:
      ValueError: for `crop` of a family that is not batched, `num_draws` below 0, and `num_draws`
        of a batched family without `crop`.
    """

    name: str
    train: Callable[..., Any]
    evaluate: Callable[..., Any]
    batched: bool = False
    crop_encoded: Callable[..., Any] | None = None
    takes_extra_augment: bool = False
    takes_padding: bool = False
    crop: Callable[..., Any] | None = None
    num_draws: int = 0

    def __post_init__(self) -> None:
        check_at_least("num_draws", self.num_draws, 0)
        of = f"of preprocessing {self.name!r}"
        if self.crop is not None and not self.batched:
            raise ValueError(f"crop {of} must come with batched=True, got batched=False")
        if self.num_draws and self.batched and self.crop is None:
            raise ValueError(
                f"num_draws {of}, which is batched, must be 0 without crop, got {self.num_draws}"
            )


def register_preprocessing(
    name: str,
    evaluate: Callable[..., Any],
    *,
    networks: tuple[str, ...] = (),
    batched: bool = False,
    crop_encoded: Callable[..., Any] | None = None,
    takes_extra_augment: bool = False,
    takes_padding: bool = False,
    crop: Callable[..., Any] | None = None,
    num_draws: int = 0,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a family, whose function `train` is decorated.

    Args:
      name: the new family's name.
      evaluate: function that preprocesses for evaluation; see `Preprocessing` for the arguments and
        shapes of both functions.
      networks: names of networks that use the family.
      batched: see `Preprocessing`.
      crop_encoded: see `Preprocessing`.
      takes_extra_augment: see `Preprocessing`.
      takes_padding: see `Preprocessing`.
      crop: see `Preprocessing`.
      num_draws: see `Preprocessing`.

    Raises:
      ValueError: if the name of the family or of a network is taken; see `Preprocessing`.

    >>> import tensorflow as tf
    >>> def resize(image, height, width):
    ...     return tf.image.resize(image, [height, width]) / 255
    >>> @register_preprocessing("resized", evaluate=resize, networks=("my_network",))
    ... def resize_for_training(image, height, width, seed):
    ...     return resize(image, height, width)
    >>> get_preprocessing("my_network").name
    'resized'
    """
    for key in (name, *networks):
        if key in preprocessing_names():
            raise ValueError(f"preprocessing name must be new, got {key!r}, which is registered")

    def register(train: Callable[..., Any]) -> Callable[..., Any]:
        _FAMILIES[name] = Preprocessing(
            name,
            train,
            evaluate,
            batched,
            crop_encoded,
            takes_extra_augment,
            takes_padding,
            crop,
            num_draws,
        )
        for network in networks:
            _FAMILY_OF_NETWORK[network] = name
        return train

    return register


def preprocessing_names() -> tuple[str, ...]:
    """Returns the names that `get_preprocessing` knows, of families and networks, sorted."""
    return tuple(sorted({*_BUILT_IN, *_FAMILIES, *_FAMILY_OF_NETWORK}))


def get_preprocessing(name: str) -> Preprocessing:
    """Returns the family with this name, or the family of the network with this name.

    A network named `<family>/<name>` uses the family `<family>`.

    Raises:
      ValueError: if there is neither.
    """
    family = _FAMILY_OF_NETWORK.get(name, name.partition("/")[0])
    if family in _BUILT_IN:
        built_in: Preprocessing = importlib.import_module(f"{__package__}.{family}").FAMILY
        return built_in
    if family not in _FAMILIES:
        raise ValueError(
            f"preprocessing name must be one of {', '.join(preprocessing_names())}, got {name!r}"
        )
    return _FAMILIES[family]
