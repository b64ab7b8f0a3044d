"""`CorruptionError`: a step that gave two results, and how it says so in one line."""

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


def describe_copies(names: Sequence[str], places: Sequence[str], fingerprints: object) -> list[str]:
    """Returns which copies of variables differ from most others, or from each other.

    Args:
      names: names of the variables.
      places: the clones of all replicas, in words.
      fingerprints: int64 [places, variables], a NumPy array.
    """
    found = []
    for name, column in zip(names, zip(*fingerprints.tolist(), strict=True), strict=True):  # type: ignore[attr-defined]
        if len(set(column)) == 1:
            continue
        most = max(column.count(value) for value in column)
        common = [value for value in set(column) if column.count(value) == most]
        odd = [
            place
            for place, value in zip(places, column, strict=True)
            if len(common) > 1 or value != common[0]
        ]
        found.append(f"copy of {name} on {' or '.join(odd)}")
    return _few(found)


def _few(found: list[str]) -> list[str]:
    more = len(found) - _NAMED
    return found if more <= 0 else [*found[:_NAMED], f"and {more} more"]


def _of_variable(each: Difference) -> str:
    device = each.device or "no device by name"
    return f"variable {each.name} on {device}: {each.bits} bits in {each.elements} of {each.size}"
