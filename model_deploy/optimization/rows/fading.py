"""How the updates that a row has missed fade: sums over steps as a few numbers per row.

Without gradient the i-th step after a row's last one changes it by

    rate * beta1 ** i * m / (beta2 ** (i / 2) * s + epsilon),  s = sqrt(v)

With `g(i) = 1 / (beta2 ** (i / 2) * s + epsilon)`, which is smooth in i, and a polynomial through
its values at a few nodes x, the sum over the missed steps is

    m * sum over nodes of (sum over i of rate * beta1 ** i * L_x(i)) * g(x)

where L_x are Lagrange's polynomials.  The inner sums depend on the row by its last step only.  The
nodes are those of Gauss' quadrature for the weights (beta1 / sqrt(beta2)) ** i, by the eigenvalues
of Jacobi's matrix (Golub and Welsch, https://doi.org/10.1090/S0025-5718-69-99647-1).
"""

import math
from typing import NamedTuple

import numpy as np

# What is left out of a sum, as a share of it: half of the distance of neighbours of float32 near 1.
_NEGLIGIBLE = 2.0**-24
# How far a sum may be off by interpolation, as a share of the sum of all missed updates.
_ERROR = 1e-6
_MOST_NODES = 12


class Fading(NamedTuple):
    """The terms of the sums.

    Attributes:
      terms: float64, [steps + 1, nodes]: by what the rate of the i-th missed step is multiplied.
      shifts: float64, [nodes]: what stands for epsilon: `1 / beta2 ** (x / 2)` for each node; the
        terms are multiplied by it as well, so that `s + shift * epsilon` is what they are divided
        by.
    """

    terms: np.ndarray
    shifts: np.ndarray


def geometric(decay: float, field: str, most_steps: int) -> Fading:
    """The terms `decay ** i`, of updates that fade without a divisor.

    Args:
      decay: at least 0, less than 1.
      field: what it is called in errors.
      most_steps: how many steps are remembered.

    Raises:
      ValueError: if updates fade too slowly for so many steps.
    """
    count = _steps_that_count(decay, f"{field}={decay:g}", most_steps)
    return Fading(decay ** np.arange(count + 1.0)[:, np.newaxis], np.ones(1))


def of_adam(beta1: float, beta2: float, most_steps: int) -> Fading:
    """The terms of Adam's missed updates.

    Args:
      beta1: decay of the first moment.
      beta2: decay of the second moment.
      most_steps: how many steps are remembered.

    Raises:
      ValueError: if updates do not fade within so many steps, or not smoothly enough for
        polynomials.
    """
    named = f"beta1={beta1:g} and beta2={beta2:g}"
    if not beta2 > beta1**2:
        raise ValueError(f"beta1 ** 2 must be less than beta2, for updates to fade, got {named}")
    ratio = beta1 / math.sqrt(beta2)
    steps = np.arange(_steps_that_count(ratio, named, most_steps) + 1.0)
    if beta1 == 0:
        return Fading(np.zeros([len(steps), 1]), np.ones(1))
    for num_nodes in range(1, min(_MOST_NODES, len(steps) - 1) + 1):
        nodes = _gauss_nodes(ratio ** steps[1:], steps[1:], num_nodes)
        shifts = beta2 ** (-nodes / 2)
        terms = beta1 ** steps[:, np.newaxis] * _lagrange(nodes, steps) * shifts
        if _error(terms, shifts, beta1, beta2) <= _ERROR / 10:
            return Fading(terms, shifts)
    if _error(terms, shifts, beta1, beta2) <= _ERROR:
        return Fading(terms, shifts)
    raise ValueError(
        f"beta2 must be nearer to 1, for missed updates to be made up for to 1e-6, got {named}"
    )


def _steps_that_count(ratio: float, named: str, most_steps: int) -> int:
    """After how many steps all further terms of a geometric sum are negligible; at least 1."""
    if ratio == 0:
        return 1
    count = math.ceil(math.log(_NEGLIGIBLE) / math.log(ratio)) if ratio < 1 else math.inf
    if count > most_steps:
        raise ValueError(
            f"updates that a row has missed must fade within {most_steps} steps, got {named}"
        )
    return int(count)


def _gauss_nodes(weights: np.ndarray, points: np.ndarray, number: int) -> np.ndarray:
    """The nodes of Gauss' quadrature for weights, [n], at points, [n]."""
    diagonal, beside = [], []
    before, now, last_norm = np.zeros_like(points), np.ones_like(points), np.inf
    for _ in range(number):
        norm = np.sum(weights * now**2)
        diagonal.append(np.sum(weights * points * now**2) / norm)
        beside.append(norm / last_norm)
        last_norm = norm
        before, now = now, (points - diagonal[-1]) * now - beside[-1] * before
    off = np.sqrt(beside[1:])
    return np.linalg.eigvalsh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))


def _lagrange(nodes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Lagrange's polynomials of nodes, [q], at points, [n]: [n, q]."""
    columns = []
    for i, node in enumerate(nodes):
        others = np.delete(nodes, i)
        columns.append(np.prod((points[:, np.newaxis] - others) / (node - others), axis=1))
    return np.stack(columns, axis=1)


def _error(terms: np.ndarray, shifts: np.ndarray, beta1: float, beta2: float) -> float:
    """The largest error after any number of missed steps, as a share of all missed updates.

    For values of s / epsilon from 0 to so large that epsilon does not count, at a constant rate.
    """
    s = np.concatenate([[0.0], 10.0 ** np.arange(-4, 8.1, 0.25)])
    steps = np.arange(len(terms))[1:, np.newaxis]
    exact = np.cumsum(beta1**steps / (beta2 ** (steps / 2) * s + 1), axis=0)
    found = np.cumsum(terms[1:] @ (1 / (s + shifts[:, np.newaxis])), axis=0)
    return float(np.max(np.abs(found - exact) / exact[-1]))
