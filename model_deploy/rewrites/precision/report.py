"""Describes which ops compute in which dtype."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.rewrites.precision.op_types import BETWEEN, COMPUTE

_NAMED = 6


def describe_types(ops: Iterable[Any], precision: str) -> str:
    """Counts by type the ops that compute in 16 bits, and ops of these types in float32.

    Args:
      ops: the ops of a step.
      precision: one of `PRECISIONS`.

    Returns:
      One line; '' for float32.
    """
    if precision == "float32":
        return ""
    found: dict[str, Counter[str]] = {precision: Counter(), "float32": Counter()}
    for op in ops:
        if op.type in COMPUTE | BETWEEN - {"Identity", "Reshape"} and op.outputs:
            name = tf.as_dtype(op.outputs[0].dtype).base_dtype.name
            if name in found:
                found[name][op.type] += 1
    inside, beside = (_most_frequent(found[name]) for name in (precision, "float32"))
    return f"precision {precision}: {inside}; in float32: {beside}"


def _most_frequent(counts: Counter[str]) -> str:
    """Returns the most frequent types in words, and how many ops of other types there are."""
    named = counts.most_common(_NAMED)
    words = [f"{count} {name}" for name, count in named]
    others = counts.total() - sum(count for _, count in named)
    return ", ".join([*words, f"{others} others"] if others else words) or "none"
