"""Which cells a network has, in which order, and how wide they are.

After B. Zoph, V. Vasudevan, J. Shlens, Q. V. Le, "Learning Transferable Architectures for Scalable
Image Recognition" (2018), https://arxiv.org/abs/1707.07012, figure 2.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from nets.nasnet.cell_config import CellNetworkConfig
from nets.nasnet.nasnet_utils import calc_reduction_layers

# Makes a cell of its filters, keep probability, number of cells, of steps, and bounded activation.
CellType = Callable[[float, float, int, int, bool], Callable[..., Any]]


class Architecture(NamedTuple):
    """The cells that a search found and the stem before them.

    Attributes:
      normal: the cell that is repeated.
      reduction: the cell between them that halves the map; None halves in the normal cell.
      stem: `cifar` is a convolution, `imagenet` one of stride 2 and two more halving cells.
    """

    normal: CellType
    reduction: CellType | None
    stem: str


class Step(NamedTuple):
    """One cell of a network.

    Attributes:
      scope: its variable scope.
      end_point: its name among the end points, None if it has none.
      cell: what makes it.
      filters: channels of each block.
      stride: 1, or 2 to halve the map.
      previous: which output is its second input, counted from the last, -1.
      auxiliary_scope: where an auxiliary head is built on its output in training, None if not.
    """

    scope: str
    end_point: str | None
    cell: CellType
    filters: int
    stride: int = 1
    previous: int = -2
    auxiliary_scope: str | None = None


def plan(config: CellNetworkConfig, architecture: Architecture) -> list[Step]:
    """Returns the cells of a network in order.

    Raises:
      ValueError: if there are too few cells for the reductions, or too few filters for the stem.
    """
    reductions = _reductions(config)
    auxiliary = reductions[1] - 1 if config.use_aux_head and len(reductions) > 1 else None
    steps = _stem_steps(config, architecture)
    for index in range(config.num_cells):
        halvings = sum(reduction <= index for reduction in reductions)
        step = Step(
            f"cell_{index}",
            f"Cell_{index}",
            architecture.normal,
            _filters(config, halvings),
            auxiliary_scope=f"aux_{index}" if index == auxiliary else None,
        )
        if index in reductions:
            steps += _halving_steps(step, halvings - 1, architecture.reduction, config)
        else:
            steps.append(step)
    return steps


def _stem_steps(config: CellNetworkConfig, architecture: Architecture) -> list[Step]:
    """Returns the cells of the stem: as narrow as halvings before the first cell leave them."""
    if architecture.stem == "cifar":
        return []
    halving = architecture.reduction or architecture.normal
    return [
        Step("cell_stem_0", None, halving, _filters(config, -2), stride=2),
        Step("cell_stem_1", "Stem", halving, _filters(config, -1), stride=2),
    ]


def _halving_steps(
    step: Step, number: int, reduction: CellType | None, config: CellNetworkConfig
) -> list[Step]:
    """Returns the step, halving; or the reduction cell of this number, and the step after it."""
    if reduction is None:
        return [step._replace(stride=2)]
    scope, end_point = f"reduction_cell_{number}", f"Reduction_Cell_{number}"
    return [
        Step(scope, end_point, reduction, step.filters, stride=2),
        step._replace(previous=-3 if config.skip_reduction_layer_input else -2),
    ]


def _reductions(config: CellNetworkConfig) -> list[int]:
    """Returns the cells that the map is halved before (or in), evenly spaced."""
    if config.num_cells <= config.num_reduction_layers:
        raise ValueError(
            f"num_cells must be greater than num_reduction_layers ({config.num_reduction_layers}),"
            f" got {config.num_cells}"
        )
    return calc_reduction_layers(config.num_cells, config.num_reduction_layers)


def _filters(config: CellNetworkConfig, halvings: int) -> int:
    """Returns the channels of a block after so many halvings, negative in the stem."""
    filters = int(config.num_conv_filters * config.filter_scaling_rate**halvings)
    if filters < 2:  # both paths of a halving need one
        raise ValueError(
            "num_conv_filters must leave each cell 2 filters when scaled by filter_scaling_rate,"
            f" got {config.num_conv_filters}"
        )
    return filters
