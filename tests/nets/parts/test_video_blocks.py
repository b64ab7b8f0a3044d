"""Inception v1 over video, in its variations; see also test_video.py."""

import pytest

from nets.parts.inception_v1_layers import LAYERS, Mixed
from nets.parts.video_blocks import TEMPORAL_LAYERS, InceptionV1Video
from tests.nets.values import images


def test_variations_are_checked_when_they_are_made():
    """A variation of the blocks that cannot be built fails before a graph is there."""
    with pytest.raises(ValueError, match=r"^first_temporal_kernel_size .*, got 4"):
        InceptionV1Video(first_temporal_kernel_size=4)


def test_layers_that_may_look_along_time():
    """These are the 3x3 convolution and all blocks, in order."""
    blocks = [name for name, layer in LAYERS.items() if isinstance(layer, Mixed)]
    assert list(TEMPORAL_LAYERS) == ["Conv2d_2c_3x3", *blocks]


def test_gating_from_a_layer_on():
    """A gating function gets the ends of branches from the given layer on."""
    scopes = []

    def gating(net, scope):
        scopes.append(scope)
        return net

    network = InceptionV1Video(7, gating_fn=gating, gating_startat="Mixed_3b", depth=lambda _: 4)
    network.base(images(1, 8, 32, 32, 3), "Mixed_3c")
    assert scopes == 2 * ["Conv2d_0a_1x1", "Conv2d_0b_3x3", "Conv2d_0b_3x3", "Conv2d_0b_1x1"]
