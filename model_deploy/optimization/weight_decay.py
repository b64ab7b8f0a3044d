"""Selects the variables that an optimizer's own weight decay applies to."""

import re
from typing import Any

from model_deploy import internals

# Biases, and offset and scale of normalization, as slim, `tf.layers` and Keras name them.
NO_WEIGHT_DECAY = r"(^|/)(bias|biases|beta|gamma)$"
# Prefix of the names of variables' copies by all-reduce.
_COPY = re.compile(r"^clone_\d+/")


def check_pattern(field: str, pattern: str) -> None:
    """Checks that a string is a valid regular expression.

    Raises:
      ValueError: naming the field and the pattern, and what is wrong with it.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"{field} must be a regular expression, got {pattern!r}: {error}"
        ) from error


def layer_name(variable: Any) -> str:
    """Returns the name of a variable of any shape, the same for its parts and clones' copies.

    A part, named `<name>/part_<i>`, gets the name of the whole variable.
    """
    part = internals.slice_of(variable)
    name = variable.op.name if part is None else part.full_name
    return _COPY.sub("", name)


def is_excluded(variable: Any, pattern: str) -> bool:
    """Whether a variable of any shape is excluded from weight decay.

    Args:
      variable: the variable, or a part of it.
      pattern: a regular expression, searched in `layer_name`; '' excludes none.
    """
    return bool(pattern) and re.search(pattern, layer_name(variable)) is not None
