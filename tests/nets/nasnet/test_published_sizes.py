"""NASNet-A and PNASNet-5: the published sizes."""

import pytest
import tensorflow.compat.v1 as tf

from nets.nasnet import nasnet, pnasnet
from tests.nets import graphs


@pytest.mark.parametrize(
    ("make", "cells", "filters"),
    [
        # N @ F: the last stage is F = 6 * 4 * filters wide.
        (nasnet.cifar_config, 6, 768 / 24),
        (nasnet.mobile_imagenet_config, 4, 1056 / 24),
        (nasnet.large_imagenet_config, 6, 4032 / 24),
        (pnasnet.mobile_imagenet_config, 3, 54),
        (pnasnet.large_imagenet_config, 4, 216),
    ],
)
def test_published_size(make, cells, filters):
    """A network has three stages of N cells; changing its config does not change the next one."""
    config = make()
    assert (config.num_cells, config.num_conv_filters) == (3 * cells, filters)
    config.num_cells += 3
    assert make().num_cells == 3 * cells


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("nasnet_mobile", [["Stem"], ["Reduction_Cell_0"], ["Reduction_Cell_1"]]),
        ("pnasnet_mobile", [["Stem"], [], []]),
    ],
)
def test_sides_of_the_stages(name, stages):
    """All cells of a stage are of one size. NASNet has a reduction cell before the next stage, and
    the first cell of PNASNet's halves.
    """
    config = (nasnet if name == "nasnet_mobile" else pnasnet).mobile_imagenet_config()
    config.set_hparam("num_conv_filters", 8)
    _, end_points = graphs.build(name, tf.zeros([2, 96, 96, 3]), config=config)
    cells, wanted = config.num_cells // 3, {}
    for number, names in enumerate(stages):
        numbers = range(number * cells, (number + 1) * cells)
        names += [f"Cell_{index}" for index in numbers]
        wanted |= dict.fromkeys(names, 12 >> number)
    found = {key: value.shape.as_list()[1] for key, value in list(end_points.items())[:-3]}
    assert list(found.items()) == list(wanted.items())
