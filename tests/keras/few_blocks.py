"""Networks of `keras.applications` with each of their blocks once: all their kinds of layers."""

import sys

import keras


def shorten(patch, num_kinds=None):
    """EfficientNetB0 has each block once, or so many of them; ConvNeXtTiny and DenseNet121 have one
    in each stage.
    """
    tables = sys.modules[keras.applications.EfficientNetB0.__module__]
    blocks = [{**each, "repeats": 1} for each in tables.DEFAULT_BLOCKS_ARGS[:num_kinds]]
    patch.setattr(tables, "DEFAULT_BLOCKS_ARGS", blocks)
    tables = sys.modules[keras.applications.ConvNeXtTiny.__module__]
    patch.setitem(tables.MODEL_CONFIGS["tiny"], "depths", [1, 1, 1, 1])
    tables = sys.modules[keras.applications.DenseNet121.__module__]
    dense = tables.DenseNet
    patch.setattr(
        tables,
        "DenseNet",
        lambda blocks, *others, **options: dense([1] * len(blocks), *others, **options),
    )
