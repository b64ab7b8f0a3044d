"""Varying step times: the expected time of a step that waits for the slowest of several workers."""

import statistics

import numpy as np

from model_deploy.checks import check_at_least, check_whole

# Range of the integral in standard deviations to both sides, and number of points.
_REACH, _POINTS = 9.0, 20_001


def expected_slowest(workers: int, mean: float, deviation: float, backups: int = 0) -> float:
    """Returns the expected time until all but `backups` of several workers are done.

    Times are normal and independent, with distribution function F.  The k-th of n times is at most
    x with probability G(x) = sum over i from k to n of C(n, i) F(x)^i (1 - F(x))^(n - i), which is
    F(x)^n for the maximum (David and Nagaraja, Order Statistics, 3rd edition 2003, section 2.1).
    Its expectation is a + the integral of 1 - G from a on, for an a with G(a) = 0.  On backups see
    Chen et al., Revisiting Distributed Synchronous SGD, 2016.

    >>> round(expected_slowest(2, 1.0, 0.1), 4)  # 1 + 0.1 / sqrt(pi)
    1.0564

    Args:
      workers: number n of workers, at least 1.
      mean: mean of a worker's time, in seconds.
      deviation: standard deviation of a worker's time, in seconds; at least 0.
      backups: number of workers that the step does not wait for, less than n.

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
    # At the start of the range no worker is done.
    slowest = float(x[0]) + float(np.sum(2 - done[1:] - done[:-1]) / 2 * (x[1] - x[0]))
    return mean + deviation * slowest


def _at_least(count: int, workers: int, below: np.ndarray) -> np.ndarray:
    """Returns the probability that `count` workers or more are done, each with `below`.

    By a recurrence over the workers: binomial coefficients of hundreds overflow floats.
    """
    missing = workers - count
    # chances[i]: probability that i of the workers so far are not done; the last entry: more than
    # that.
    chances = np.zeros((missing + 2, len(below)))
    chances[0] = 1.0
    for _ in range(workers):
        late = chances * (1 - below)
        chances = chances * below
        chances[1:] += late[:-1]
        chances[-1] += late[-1]
    return np.asarray(chances[:-1].sum(axis=0))
