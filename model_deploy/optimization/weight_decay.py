"""Which variables an optimizer's own weight decay is for."""

import re
from typing import Any

from model_deploy import internals

# Biases, and the shift and scale of normalisation, in the names of Slim, `tf.layers` and Keras.
NO_WEIGHT_DECAY = r"(^|/)(bias|biases|beta|gamma)$"
# What all-reduce puts before the names of the copies of a variable.
_COPY = re.compile(r"^clone_\d+/")


def check_pattern(field: str, pattern: str) -> None:
    """Checks a regular expression.

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
    """The name of a variable of any shape, the same for its parts and for each clone's copy.

    Parts, named `<name>/part_<i>`, have that of the whole.
    """
    part = internals.slice_of(variable)
    name = variable.op.name if part is None else part.full_name
    return _COPY.sub("", name)


def is_excluded(variable: Any, pattern: str) -> bool:
    """Whether a variable of any shape is one of those that are not decayed.

    Args:
      variable: the variable, or a part of it.
      pattern: a regular expression, searched in `layer_name`; of an empty one there are none.
    """
    return bool(pattern) and re.search(pattern, layer_name(variable)) is not None
