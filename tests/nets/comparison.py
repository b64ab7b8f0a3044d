"""How far the figures of a training step are from the reference's, and which are too far.

The tests of the networks, the measurement of the bounds and the tests of wrong networks all
compare by this.
"""

from typing import Any

import numpy as np

from tests.nets import graphs, reference
from tests.nets.training_step import Figures

# By kind of figure, then by the variable that it is of; "" where it is of the whole network.
Differences = dict[str, dict[str, float]]


def differences(actual: Figures, facts: dict[str, Any]) -> Differences:
    """Returns the relative difference of each figure.

    Args:
      actual: what a training step computed.
      facts: `training_loss_and_update` of the reference numbers.
    """
    relative = reference.relative_difference
    found = {
        "logits": {"": relative(actual.logits, facts["logits"])},
        "cross_entropy": {"": relative(actual.cross_entropy, facts["cross_entropy"])},
        "gradient_norm": {"": relative(actual.gradient_norm, facts["gradient_global_norm"])},
        "gradient_norms": {
            name: relative(actual.gradient_norms.get(name, np.inf), norm)
            for name, norm in facts["gradient_norms_some"]
        },
    }
    if "aux_logits" in facts:
        found["auxiliary_logits"] = {"": relative(actual.auxiliary_logits, facts["aux_logits"])}
    if actual.moving:
        found["moving_statistics"] = {
            name: relative(_summary(actual.moving[name]), [mean, deviation, *first])
            for name, mean, deviation, first in facts["moving_statistics_after_one_update"]
        }
        found["moving_sums"] = {}
        for kind in ("mean", "variance"):
            values = _all_moving(actual, kind)
            difference = abs(values.sum() - facts[f"moving_{kind}_sum_after_one_update"])
            found["moving_sums"][kind] = float(difference / np.abs(values).sum())
    return found


def as_facts(figures: Figures, facts: dict[str, Any]) -> dict[str, Any]:
    """Returns what `facts` would be if the reference were `figures`."""
    others = {
        "logits": figures.logits,
        "cross_entropy": figures.cross_entropy,
        "gradient_global_norm": figures.gradient_norm,
        "gradient_norms_some": [
            (name, figures.gradient_norms[name]) for name, _ in facts["gradient_norms_some"]
        ],
    }
    if "aux_logits" in facts:
        others["aux_logits"] = figures.auxiliary_logits
    if figures.moving:
        others["moving_statistics_after_one_update"] = [
            (name, *graphs.statistics(figures.moving[name]))
            for name, *_ in facts["moving_statistics_after_one_update"]
        ]
        for kind in ("mean", "variance"):
            others[f"moving_{kind}_sum_after_one_update"] = _all_moving(figures, kind).sum()
    return others


def wrong(name: str, actual: Figures) -> dict[str, dict[str, tuple[float, float]]]:
    """Returns the difference and the bound of each figure that is not within it, by kind.

    Args:
      name: of the network whose reference the figures are to equal.
      actual: what a training step computed.
    """
    bounds = reference.training_bounds(name)
    found = differences(actual, reference.load(name)["training_loss_and_update"])
    assert found.keys() == bounds.keys()
    pairs = {
        kind: {
            of: (difference, bound)
            for (of, difference), bound in zip(values.items(), bounds[kind], strict=True)
            if not difference <= bound
        }
        for kind, values in found.items()
    }
    return {kind: values for kind, values in pairs.items() if values}


def _summary(value: np.ndarray) -> list[float]:
    mean, deviation, first = graphs.statistics(value)
    return [mean, deviation, *first]


def _all_moving(figures: Figures, kind: str) -> np.ndarray:
    """Returns all moving means or variances, one behind the other, as float64."""
    values = [v.ravel() for name, v in figures.moving.items() if name.endswith(kind)]
    return np.concatenate(values, dtype=np.float64)
