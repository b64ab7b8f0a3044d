"""Describes which ops compute with channels first."""

from collections.abc import Collection
from typing import Any

from model_deploy.rewrites.layouts.axes import FIRST
from model_deploy.rewrites.layouts.op_types import has_layout


def describe_layout(ops: Collection[Any], data_format: str) -> str:
    """Counts the ops of images with channels first, and the transpositions that this takes.

    Args:
      ops: the ops of a step.
      data_format: one of `settings.DATA_FORMATS`.

    Returns:
      One line; '' if `data_format` is not `NCHW`.
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
