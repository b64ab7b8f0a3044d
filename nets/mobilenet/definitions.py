"""Layers as data: a function, its keywords, and what makes it thinner or wider."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from model_deploy import slim
from nets.parts.depth import make_divisible
from nets.parts.network import check_at_least

ConvDefs = dict[str, Any]


@slim.add_arg_scope
def apply_activation(
    x: Any, name: str | None = None, activation_fn: Callable[..., Any] | None = None
) -> Any:
    """Returns `activation_fn(x, name=name)`, or x where there is no such function."""
    return x if activation_fn is None else activation_fn(x, name=name)


@slim.add_arg_scope
def depth_multiplier(
    output_params: dict[str, Any],
    multiplier: float,
    divisible_by: int = 8,
    min_depth: int = 8,
    **unused_kwargs: Any,
) -> None:
    """Multiplies `num_outputs` of a layer in place, if it has some.

    Args:
      output_params: keywords of the layer.
      multiplier: any number of at least 0.
      divisible_by: the result is a multiple of it, as `make_divisible` rounds.
      min_depth: the fewest channels.
      **unused_kwargs: are not used.

    Raises:
      ValueError: if `divisible_by` or `min_depth` is not a whole number of at least 1.
    """
    check_at_least("divisible_by", divisible_by, 1)
    check_at_least("min_depth", min_depth, 1)
    if "num_outputs" in output_params:
        depth = output_params["num_outputs"] * multiplier
        output_params["num_outputs"] = make_divisible(depth, divisible_by, min_depth)


class Op(NamedTuple):
    """A layer: a function of a feature map, its keywords, and what scales these.

    `multiplier_func(params, multiplier)` changes a copy of the keywords in place.
    """

    op: Callable[..., Any]
    params: dict[str, Any]
    multiplier_func: Callable[..., Any]


def op(
    opfunc: Callable[..., Any],
    multiplier_func: Callable[..., Any] = depth_multiplier,
    **params: Any,
) -> Op:
    """Returns the definition of a layer.

    Args:
      opfunc: builds it: `opfunc(net, **params)`.
      multiplier_func: scales it, see `Op`.
      **params: go to `opfunc`; but `multiplier_transform` takes the place of `multiplier_func`.

    >>> op(slim.conv2d, num_outputs=16, kernel_size=[3, 3]).params
    {'num_outputs': 16, 'kernel_size': [3, 3]}
    """
    multiplier_func = params.pop("multiplier_transform", multiplier_func)
    return Op(opfunc, params, multiplier_func)


def with_last_layer(conv_defs: ConvDefs, multiplier: float) -> ConvDefs:
    """Returns a copy of a network whose last layer is scaled by this multiplier, whatever comes."""
    *others, last = conv_defs["spec"]

    def scale(params: dict[str, Any], _: float) -> None:
        last.multiplier_func(params, multiplier)

    return {**conv_defs, "spec": [*others, last._replace(multiplier_func=scale)]}


class NoOpScope:
    """A `with` block that does nothing."""

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(self, *_: object) -> None:
        """Does nothing."""


def safe_arg_scope(funcs: Iterable[Callable[..., Any]], **kwargs: Any) -> Any:
    """Returns `slim.arg_scope` of the keywords that are not None; `NoOpScope` if none is left."""
    given = {name: value for name, value in kwargs.items() if value is not None}
    return slim.arg_scope(funcs, **given) if given else NoOpScope()
