"""What a preprocessing family is, and the tables of families and of network names."""

import dataclasses
from collections.abc import Callable
from typing import Any

_FAMILIES: dict[str, "Preprocessing"] = {}
_FAMILY_OF_NETWORK: dict[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Preprocessing:
    """How images become the input of a network.

    Attributes:
      name: the name of the family.
      train: `train(images, height, width, seeds, **options)`, which may augment at
        random, as a function of the seeds alone; the shapes are those of `batched`.
      evaluate: `evaluate(images, height, width, **options)`, nothing random.
      batched: whether `images` are whole batches of images of one size, uint8
        [n, h, w, c] with seeds int64 [n, 2], or single images, uint8 [h, w, c] with
        a seed int64 [2].  The result is float32 of the same rank.
      crop_encoded: for families that cut a part out first: `crop_encoded(contents,
        seed, channels)` decodes that part, uint8 [h, w, c], of a string [].
        `train` is then called with `crop_image=False`.  For `fast_decode` it takes a keyword
        `smallest`, (height, width), to which it may reduce that part.
      takes_extra_augment: whether `train` takes a keyword `extra_augment`: None, or a function
        that it applies to the images when they are cut and mirrored, and not yet normalized.  That
        takes images of its rank with 1 or 3 channels, uint8 or float32 from 0 to 255, and gives
        such of the same shape, uint8.
      takes_padding: whether `train` takes a keyword `padding`, the pixels on each side of an image
        of which it cuts a part out.
    """

    name: str
    train: Callable[..., Any]
    evaluate: Callable[..., Any]
    batched: bool = False
    crop_encoded: Callable[..., Any] | None = None
    takes_extra_augment: bool = False
    takes_padding: bool = False


def register_preprocessing(
    name: str,
    evaluate: Callable[..., Any],
    *,
    networks: tuple[str, ...] = (),
    batched: bool = False,
    crop_encoded: Callable[..., Any] | None = None,
    takes_extra_augment: bool = False,
    takes_padding: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of the function that preprocesses for training.

    Args:
      name: the new family's name.
      evaluate: the function that preprocesses for evaluation; see `Preprocessing` for its
        arguments and their shapes, and those of the decorated function.
      networks: names of networks that use it.
      batched: see `Preprocessing`.
      crop_encoded: see `Preprocessing`.
      takes_extra_augment: see `Preprocessing`.
      takes_padding: see `Preprocessing`.

    Raises:
      ValueError: if the name of the family or of a network is taken.

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
        if key in _FAMILIES or key in _FAMILY_OF_NETWORK:
            raise ValueError(f"preprocessing name must be new, got {key!r}, which is registered")

    def register(train: Callable[..., Any]) -> Callable[..., Any]:
        _FAMILIES[name] = Preprocessing(
            name, train, evaluate, batched, crop_encoded, takes_extra_augment, takes_padding
        )
        for network in networks:
            _FAMILY_OF_NETWORK[network] = name
        return train

    return register


def preprocessing_names() -> tuple[str, ...]:
    """The names that `get_preprocessing` knows, of families and of networks, sorted."""
    return tuple(sorted({*_FAMILIES, *_FAMILY_OF_NETWORK}))


def get_preprocessing(name: str) -> Preprocessing:
    """The family with this name, or the one that the network with this name uses.

    Networks called `<family>/<name>` use the family.

    Raises:
      ValueError: if there is neither.
    """
    family = _FAMILY_OF_NETWORK.get(name, name.partition("/")[0])
    if family not in _FAMILIES:
        raise ValueError(
            f"preprocessing name must be one of {', '.join(preprocessing_names())}, got {name!r}"
        )
    return _FAMILIES[family]
