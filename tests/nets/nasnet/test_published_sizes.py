"""NASNet-A and PNASNet-5: the published sizes."""

import pytest

from nets.nasnet import nasnet, pnasnet


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
