"""What every network shares: its entry in the table of names and the checks of its arguments."""

import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Network(NamedTuple):
    """One row of a family's `NETWORKS` table.

    Attributes:
      function: builds the network: `function(images, num_classes, is_training, ...)`
        returns `(logits, end_points)`. Decorated with `takes`.
      arg_scope: `arg_scope(weight_decay=...)` returns the slim arg scope that the
        function is to be called under.
    """

    function: Callable[..., Any]
    arg_scope: Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Images:
    """The images that a network takes: `[batch, height, width, channels]`, or with frames.

    Attributes:
      size: height and width that the network was designed for.
      smallest: least height and width, a number or a function of the call's
        arguments (by name) where keywords change it.
      rank: 4 for images, 5 for video `[batch, frames, height, width, channels]`.
      channels: channel counts that make sense: 1 is grey, 3 is RGB.
      other_channels: whether it takes any other number of channels, too.
    """

    size: int
    smallest: int | Callable[[Mapping[str, Any]], int] = 1
    rank: int = 4
    channels: tuple[int, ...] = (1, 3)
    other_channels: bool = False

    def smallest_for(self, arguments: Mapping[str, Any]) -> int:
        """Returns the least height and width for a call with these arguments."""
        return self.smallest if isinstance(self.smallest, int) else self.smallest(arguments)

    def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raises ValueError if the argument called `name` is not such images.

        A height or width that is unknown until the graph runs is left to TensorFlow.
        """
        if arguments[name].shape.rank != self.rank:
            raise ValueError(
                f"{name} must have rank {self.rank}, got shape {arguments[name].shape}"
            )
        shape = tuple(arguments[name].shape.as_list())
        channels = shape[-1]
        if channels is None or not (self.other_channels or channels in self.channels):
            counts = " or ".join(map(str, self.channels))
            allowed = "a known number of" if self.other_channels else counts
            raise ValueError(f"{name} must have {allowed} channels, got {channels} in {shape}")
        smallest = self.smallest_for(arguments)
        if any(side is not None and side < smallest for side in shape[-3:-1]):
            raise ValueError(
                f"{name} must be at least {smallest} pixels high and wide, got shape {shape}"
            )


@dataclasses.dataclass(frozen=True)
class Tokens:
    """Token ids that a text network takes: whole numbers `[batch, length]`.

    Attributes:
      size: usual length in tokens.
    """

    size: int

    def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raises ValueError if the argument called `name` is not token ids."""
        tokens = arguments[name]
        if tokens.shape.rank != 2:
            raise ValueError(f"{name} must have rank 2 [batch, length], got shape {tokens.shape}")
        if not tokens.dtype.is_integer:
            raise ValueError(f"{name} must be of an integer type, got {tokens.dtype.name}")
        shape = tuple(tokens.shape.as_list())
        if shape[1] is not None and shape[1] < 1:
            raise ValueError(f"{name} must hold at least 1 token, got shape {shape}")


def takes(inputs: Images | Tokens) -> Callable[[Function], Function]:
    """Makes a function check its inputs (first argument) and `num_classes` before it builds.

    The function gets the attributes `default_image_size` and `inputs`.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        first = next(iter(signature.parameters))

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            call = signature.bind(*args, **kwargs)
            call.apply_defaults()
            check_num_classes(call.arguments.get("num_classes"))
            inputs.check(first, call.arguments)
            return function(*args, **kwargs)

        checked.default_image_size = inputs.size  # type: ignore[attr-defined]
        checked.inputs = inputs  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorate


def wrapped_partial(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Returns `func` with arguments given and other defaults for keywords; its attributes stay."""
    variant = functools.partial(func, *args, **kwargs)
    functools.update_wrapper(variant, func)
    # So that its signature is its own, with the other defaults.
    del variant.__wrapped__  # type: ignore[attr-defined]
    vars(variant).pop("__signature__", None)
    return variant


def check_num_classes(num_classes: Any) -> None:
    """Raises ValueError unless `num_classes` is None or a whole number of at least 0."""
    if num_classes is None:
        return
    try:
        valid = operator.index(num_classes) >= 0
    except TypeError:
        valid = False
    if not valid:
        raise ValueError(
            "num_classes must be None or a whole number of at least 0 (0: features instead of"
            f" logits), got {num_classes!r}"
        )


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raises ValueError if the argument called `name` is none of the `choices`."""
    if value not in choices:
        allowed = ", ".join(map(str, choices))
        raise ValueError(f"{name} must be one of {allowed}, got {value!r}")


def check_at_least(name: str, value: Any, least: int) -> None:
    """Raises ValueError unless the argument called `name` is a whole number of at least `least`."""
    try:
        valid = operator.index(value) >= least
    except TypeError:
        valid = False
    if not valid:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
