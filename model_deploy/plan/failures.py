"""Failing machines: how often to save, and which fraction of the time makes steps that count."""

import math

HOUR = 3600.0


def best_save_interval(save_secs: float, secs_between_failures: float) -> float:
    """Returns the seconds of training between saves that lose the least time.

    To first order that is sqrt(2 d M), for saves of d seconds and M seconds between failures
    (Young, A first order approximation to the optimum checkpoint interval, Communications of the
    ACM 17, 1974).  Used here is the estimate of higher order,
    sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d for d < 2 M, and else M (Daly, A higher
    order estimate of the optimum checkpoint interval for restart dumps, Future Generation
    Computer Systems 22, 2006, equation 37).

    >>> round(best_save_interval(60, 24 * HOUR) / 60)  # Young: 54 minutes
    53

    Args:
      save_secs: how long a save stops the training; more than 0.
      secs_between_failures: mean time between failures of any machine; more than 0.

    Raises:
      ValueError: naming field, rule and value.
    """
    _check_positive("save_secs", save_secs)
    _check_positive("secs_between_failures", secs_between_failures)
    ratio = save_secs / (2 * secs_between_failures)
    if ratio >= 1:
        return secs_between_failures
    first_order = math.sqrt(2 * save_secs * secs_between_failures)
    return first_order * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save_secs


def useful_share(
    save_interval: float, save_secs: float, restart_secs: float, secs_between_failures: float
) -> float:
    """Returns the fraction of the time that makes steps which are not lost, from 0 to 1.

    t / (M e^(R / M) (e^((t + d) / M) - 1)), for t seconds between saves of d seconds, restarts of
    R seconds, and failures that come independently of each other, M seconds apart on average
    (Daly 2006, equation 20, which has its inverse).

    Raises:
      ValueError: naming field, rule and value.
    """
    _check_positive("save_interval", save_interval)
    _check_positive("secs_between_failures", secs_between_failures)
    mean = secs_between_failures
    growth = math.expm1(min(700.0, (save_interval + save_secs) / mean))
    return save_interval / (mean * math.exp(min(700.0, restart_secs / mean)) * growth)


def _check_positive(field: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{field} must be more than 0, got {value}")
