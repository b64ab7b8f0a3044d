"""`CorruptionError`: a step that gave two results, and how it says so in one line."""

import collections
from collections.abc import Sequence

from model_deploy.verification.kept_values import Difference

# Of each kind of difference so many are named.
_NAMED = 3


class CorruptionError(FloatingPointError):
    """Two makings of a step, or two copies of a variable, differ: the values are not to be saved.

    Attributes:
      step: number of the step.
    """

    def __init__(self, step: int, found: Sequence[str]) -> None:
        self.step = step
        super().__init__(f"silent corruption at step {step}: {'; '.join(found)}")


def describe(
    gradients: Sequence[str], variables: Sequence[Difference], *, loss_differs: bool
) -> list[str]:
    """Returns what differs between two makings of a step, few of each kind, nothing if all agree.

    Args:
      gradients: names of gradients.
      variables: variables after the step.
      loss_differs: whether the reports of the two makings differ.
    """
    found = [*_few(list(gradients)), *_few([_of_variable(each) for each in variables])]
    if loss_differs and not found:
        found.append("the loss")
    return found


def describe_copies(
    names: Sequence[str], places: Sequence[str], fingerprints: Sequence[Sequence[int]]
) -> list[str]:
    """Returns which copies of variables differ from most others or, where none is rarer, which do.

    Args:
      names: names of the variables.
      places: devices of the clones of all replicas.
      fingerprints: for each place those of its copies, in the order of `names`.
    """
    found = []
    for name, column in zip(names, zip(*fingerprints, strict=True), strict=True):
        counts = collections.Counter(column).most_common()
        if len(counts) == 1:
            continue
        is_tie = counts[0][1] == counts[1][1]
        odd = [
            place
            for place, value in zip(places, column, strict=True)
            if is_tie or value != counts[0][0]
        ]
        which = "those" if is_tie else "from most others that"
        found.append(f"copies of variable {name} differ, {which} on {' and '.join(odd)}")
    return _few(found)


def _few(found: list[str]) -> list[str]:
    more = len(found) - _NAMED
    return found if more <= 0 else [*found[:_NAMED], f"and {more} more"]


def _of_variable(each: Difference) -> str:
    device = each.device or "no device by name"
    return (
        f"variable {each.name} on {device}: {each.bits} bits in {each.elements} of {each.size} "
        "elements"
    )
