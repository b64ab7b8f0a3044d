"""Step times that differ: what a step takes that waits for the slowest of several workers."""

import statistics

import numpy as np

from model_deploy.checks import check_at_least, check_whole

# Of the integral: in standard deviations to both sides, and points.
_REACH, _POINTS = 9.0, 20_001


def expected_slowest(workers: int, mean: float, deviation: float, backups: int = 0) -> float:
    """The expected time until all but `backups` of several workers are done.

    Times are normal and independent.  Of n of them the k-th is at most x with the probability
    sum over i from k to n of C(n, i) F(x)^i (1 - F(x))^(n - i), and for k = n, the maximum, with
    F(x)^n (David and Nagaraja, Order Statistics, 3rd edition 2003, section 2.1); its expectation is
    the integral of 1 - that from where it is 0 on, which is added to where that is.  What backups
    are worth: Chen et al., Revisiting Distributed Synchronous SGD, 2016.

    >>> round(expected_slowest(2, 1.0, 0.1), 4)  # 1 + 0.1 / sqrt(pi)
    1.0564

    Args:
      workers: n, at least 1.
      mean: of a worker's time, in seconds.
      deviation: its standard deviation, in seconds; at least 0.
      backups: how many are not waited for, less than n.

    Returns:
      Seconds.

    Raises:
      ValueError: naming field, rule and value.
    """
    check_whole("workers", workers, 1)
    check_at_least("deviation", deviation, 0)
    check_whole("backups", backups, 0)
    if backups >= workers:
        raise ValueError(f"backups must be less than workers={workers}, got {backups}")
    if deviation == 0:
        return mean
    x = np.linspace(-_REACH, _REACH, _POINTS)
    normal = statistics.NormalDist()
    below = np.array([normal.cdf(point) for point in x])
    done = _at_least(workers - backups, workers, below)
    # Where it begins, nobody is done.
    slowest = float(x[0]) + float(np.sum(2 - done[1:] - done[:-1]) / 2 * (x[1] - x[0]))
    return mean + deviation * slowest


def _at_least(count: int, workers: int, below: np.ndarray) -> np.ndarray:
    """The probability that at least `count` of all are done, each with those of `below`.

    As a recurrence over the workers, for binomial coefficients of hundreds do not fit into floats.
    """
    missing = workers - count
    # chances[i]: that i of the workers so far are not done; the last one: that more are not.
    chances = np.zeros((missing + 2, len(below)))
    chances[0] = 1.0
    for _ in range(workers):
        late = chances * (1 - below)
        chances = chances * below
        chances[1:] += late[:-1]
        chances[-1] += late[-1]
    return np.asarray(chances[:-1].sum(axis=0))
