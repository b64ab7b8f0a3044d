"""NASNet-A: the published sizes."""

import pytest
import tensorflow.compat.v1 as tf

from nets.nasnet import nasnet
from tests.nets import graphs


@pytest.mark.parametrize(
    ("config", "cells", "width"),
    [
        pytest.param(nasnet.cifar_config, 6, 768, id="6@768"),
        pytest.param(nasnet.mobile_imagenet_config, 4, 1056, id="4@1056"),
        pytest.param(nasnet.large_imagenet_config, 6, 4032, id="6@4032"),
    ],
)
def test_published_size(config, cells, width):
    """A network N @ F has three stages of N cells; the last one is F = 6 * 4 * filters wide."""
    config = config()
    assert config.num_cells == 3 * cells
    assert 6 * 4 * config.num_conv_filters == width


@pytest.mark.slow
def test_reduction_cells_halve_between_the_stages():
    """All cells of a stage are of one size, and a reduction cell comes before the next stage."""
    config = nasnet.mobile_imagenet_config()
    config.set_hparam("num_conv_filters", 8)
    _, end_points = graphs.build("nasnet_mobile", tf.zeros([2, 96, 96, 3]), config=config)
    sides = {name: value.shape.as_list()[1] for name, value in list(end_points.items())[:-3]}
    stages = [
        {"Stem": 12, **{f"Cell_{index}": 12 for index in range(4)}},
        {"Reduction_Cell_0": 6, **{f"Cell_{index}": 6 for index in range(4, 8)}},
        {"Reduction_Cell_1": 3, **{f"Cell_{index}": 3 for index in range(8, 12)}},
    ]
    assert list(sides.items()) == [item for stage in stages for item in stage.items()]
