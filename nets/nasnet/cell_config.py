"""The settings of a network of cells, such as NASNet-A and PNASNet-5."""

import dataclasses
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple


class _Rule(NamedTuple):
    holds: Callable[[Any], bool]
    text: str


def _is_number(value: Any, kind: type = Real) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


_COUNT = _Rule(
    lambda value: _is_number(value, Integral) and value >= 1, "a whole number of at least 1"
)
_COUNT_OR_ZERO = _Rule(
    lambda value: _is_number(value, Integral) and value >= 0, "a whole number of at least 0"
)
_FACTOR = _Rule(lambda value: _is_number(value) and value > 0, "a number greater than 0")
_SHARE = _Rule(lambda value: _is_number(value) and 0 < value <= 1, "a number in (0, 1]")
_LAYOUT = _Rule(lambda value: value in ("NHWC", "NCHW"), "NHWC or NCHW")
_SWITCH = _Rule(lambda value: value in (False, True), "True or False")

_RULES = {
    "num_cells": _COUNT,
    "num_conv_filters": _COUNT,
    "stem_multiplier": _FACTOR,
    "drop_path_keep_prob": _SHARE,
    "dense_dropout_keep_prob": _SHARE,
    "filter_scaling_rate": _FACTOR,
    "num_reduction_layers": _COUNT_OR_ZERO,
    "skip_reduction_layer_input": _SWITCH,
    "use_aux_head": _SWITCH,
    "total_training_steps": _COUNT,
    "data_format": _LAYOUT,
    "use_bounded_activation": _SWITCH,
}


@dataclasses.dataclass
class CellNetworkConfig:
    """How many cells, how wide, and what is dropped.

    Not frozen, because Slim code changes the settings that it gets from functions such as
    `nasnet.cifar_config()`; every change is checked.

    >>> config = CellNetworkConfig(num_cells=6, num_conv_filters=32)
    >>> config.set_hparam("drop_path_keep_prob", 0.8)
    >>> config.drop_path_keep_prob
    0.8

    Attributes:
      num_cells: number of cells, besides reduction cells and the cells of the stem.
      num_conv_filters: channels of a block before the first reduction.
      stem_multiplier: widens the first convolution.
      drop_path_keep_prob: share of the paths that the last cell keeps at the end of training.
      dense_dropout_keep_prob: share of the features that dropout keeps before the logits.
      filter_scaling_rate: widens the blocks at each reduction.
      num_reduction_layers: how often the map is halved, besides the stem.
      skip_reduction_layer_input: whether the cell after a reduction cell takes, as its second
        input, the last cell before the reduction but one instead of the last.
      use_aux_head: whether training builds the auxiliary head.
      total_training_steps: number of steps until `drop_path_keep_prob` is reached.
      data_format: layout of the feature maps, `NHWC` or `NCHW`; images are always `NHWC`.
      use_bounded_activation: ReLU6 in place of ReLU, and all states within 6 of zero, for
        arithmetic in few bits.

    Raises:
      ValueError: if a value breaks its rule, or there is no such setting.
    """

    num_cells: int
    num_conv_filters: int
    stem_multiplier: float = 1.0
    drop_path_keep_prob: float = 1.0
    dense_dropout_keep_prob: float = 1.0
    filter_scaling_rate: float = 2.0
    num_reduction_layers: int = 2
    skip_reduction_layer_input: bool = False
    use_aux_head: bool = True
    total_training_steps: int = 250_000
    data_format: str = "NHWC"
    use_bounded_activation: bool = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _RULES:
            raise ValueError(f"setting must be one of {', '.join(_RULES)}, got {name!r}")
        if not _RULES[name].holds(value):
            raise ValueError(f"{name} must be {_RULES[name].text}, got {value!r}")
        super().__setattr__(name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes one setting, as old code does."""
        setattr(self, name, value)

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> "CellNetworkConfig":
        """Changes several settings, as old code does, and returns the config."""
        for name, value in values_dict.items():
            setattr(self, name, value)
        return self

    def values(self) -> dict[str, Any]:
        """Returns all settings, name -> value."""
        return dataclasses.asdict(self)
