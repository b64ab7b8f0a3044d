"""The plan of the cells of a network."""

import pytest

from nets.nasnet import nasnet_utils
from nets.nasnet.cell_config import CellNetworkConfig
from nets.nasnet.cell_plan import Architecture, plan

_CELL = nasnet_utils.NasNetANormalCell
_FOUND = {
    "cifar": Architecture(_CELL, _CELL, "cifar"),
    "imagenet": Architecture(_CELL, _CELL, "imagenet"),
    "halving in place": Architecture(_CELL, None, "imagenet"),
}


def small_config(**settings):
    """Returns a config of three narrow cells."""
    return CellNetworkConfig(**{"num_cells": 3, "num_conv_filters": 8, **settings})


@pytest.mark.parametrize(
    ("settings", "heads"),
    [
        pytest.param({}, ["aux_1"], id="before-the-second-reduction"),
        pytest.param({"num_cells": 6}, ["aux_3"], id="six-cells"),
        pytest.param({"use_aux_head": False}, [], id="switched-off"),
        pytest.param({"num_reduction_layers": 1}, [], id="one-reduction"),
    ],
)
def test_plan_of_the_auxiliary_head(settings, heads):
    """The auxiliary head is on the last cell before the second reduction."""
    steps = plan(small_config(**settings), _FOUND["cifar"])
    assert [step.auxiliary_scope for step in steps if step.auxiliary_scope] == heads


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_cells": 2}, r"num_cells must be greater than num_reduction_layers \(2\), got 2"),
        ({"num_conv_filters": 7}, "num_conv_filters must leave each cell 2 filters .*, got 7"),
    ],
)
def test_plan_rejects(settings, message):
    """Settings that do not go together are named."""
    with pytest.raises(ValueError, match=message):
        plan(small_config(**settings), _FOUND["imagenet"])
