"""Networks with few of their blocks: all their kinds of layers, built in a third of the time."""

import re

from nets import inception_resnet_v2, inception_v3, inception_v4, resnet_v1, resnet_v2
from nets.mobilenet import mobilenet_v2
from nets.nasnet import nasnet, pnasnet

# Blocks that are the same as another one, but for the width; heads are on the last ones.
_REPEATED = {
    inception_v3: re.compile(r"Mixed_(5d|6[bcd])$"),
    inception_v4: re.compile(r"Mixed_(5[cde]|6[c-g]|7c)$"),
}
# Parts of the names of variables that are missing in shortened Inception v3 and ResNets.
MISSING = re.compile(r"/(unit_([3-9]|\d\d)|Mixed_(5d|6[bcd]))/")


def shorten(patch):
    """Inception v3, v4 and -ResNet have each of their blocks once or twice, ResNets have two units
    in a block, and mobile networks of cells have three cells of few channels.

    Args:
      patch: a `pytest.MonkeyPatch`.
    """
    repeat, steps = inception_resnet_v2._repeat, inception_v3._steps

    def twice(scope, times, *arguments):
        return repeat(scope, min(times, 2), *arguments)

    patch.setattr(inception_resnet_v2, "_repeat", twice)
    patch.setattr(inception_v3, "_steps", lambda conv: _without(inception_v3, steps(conv)))
    patch.setattr(inception_v4, "_STEPS", _without(inception_v4, inception_v4._STEPS))
    for module in (resnet_v1, resnet_v2):

        def of_two_units(version, depths, *arguments, four_blocks=module.four_blocks):
            return four_blocks(version, [min(depth, 2) for depth in depths], *arguments)

        patch.setattr(module, "four_blocks", of_two_units)
    for module in (nasnet, pnasnet):

        def of_three_cells(published=module.mobile_imagenet_config):
            return published().override_from_dict({"num_cells": 3, "num_conv_filters": 8})

        patch.setattr(module, "mobile_imagenet_config", of_three_cells)


def _without(module, steps):
    return {name: step for name, step in steps.items() if not _REPEATED[module].match(name)}


def shorten_mobilenet_v2(patch):
    """MobileNet v2 has none of the blocks that repeat the one before."""
    layers = mobilenet_v2.V2_DEF["spec"]
    before = [None, *(layer.params["num_outputs"] for layer in layers)]
    few = [
        layer
        for layer, width in zip(layers, before[:-1], strict=True)
        if layer.params["num_outputs"] != width
    ]
    patch.setitem(mobilenet_v2.V2_DEF, "spec", few)
