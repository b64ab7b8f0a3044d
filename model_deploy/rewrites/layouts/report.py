"""Which ops compute with the channels in front, in words."""

from collections.abc import Collection
from typing import Any

from model_deploy.rewrites.layouts.axes import FIRST
from model_deploy.rewrites.layouts.op_types import has_layout


def describe_layout(ops: Collection[Any], data_format: str) -> str:
    """Counts the ops of images that have their channels first, and the transpositions for that.

    Args:
      ops: those of a step.
      data_format: of `settings.DATA_FORMATS`.

    Returns:
      One line; '' where the layout is left to TensorFlow or to the model.
    """
    if data_format != "NCHW":
        return ""
    layouts = [op.get_attr("data_format") for op in ops if has_layout(op.type)]
    first = sum(layout in FIRST.values() for layout in layouts)
    transposed = sum(op.type == "Transpose" for op in ops)
    return (
        f"data_format NCHW: {first} of {len(layouts)} convolutions, pools and norms have the "
        f"channels first, with {transposed} transpositions"
    )
