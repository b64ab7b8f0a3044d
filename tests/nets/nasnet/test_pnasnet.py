"""PNASNet-5: the published sizes."""

import pytest
import tensorflow.compat.v1 as tf

from nets.nasnet import pnasnet
from tests.nets import graphs


@pytest.mark.parametrize(
    ("config", "cells", "filters"),
    [
        pytest.param(pnasnet.mobile_imagenet_config, 3, 54, id="N=3,F=54"),
        pytest.param(pnasnet.large_imagenet_config, 4, 216, id="N=4,F=216"),
    ],
)
def test_published_size(config, cells, filters):
    """A network of N and F has three stages of N cells and F filters in the first."""
    config = config()
    assert (config.num_cells, config.num_conv_filters) == (3 * cells, filters)


@pytest.mark.slow
def test_reductions_are_normal_cells_with_a_stride():
    """The first cell of the second and third stage halves; there is no reduction cell."""
    config = pnasnet.mobile_imagenet_config()
    config.set_hparam("num_conv_filters", 8)
    _, end_points = graphs.build("pnasnet_mobile", tf.zeros([2, 96, 96, 3]), config=config)
    sides = [end_points[f"Cell_{index}"].shape.as_list()[1] for index in range(9)]
    assert sides == [12, 12, 12, 6, 6, 6, 3, 3, 3]
    assert not any("Reduction" in name for name in end_points)
