"""Checks of single values; each error names the field, the rule and the value."""

import importlib.util
import numbers
from collections.abc import Collection


def check_at_least(field: str, value: float | None, minimum: float) -> None:
    """Checks that a number has at least a minimum; None (a setting that is not given) passes.

    >>> check_at_least("num_epochs", 0, 1)
    Traceback (most recent call last):
    ValueError: num_epochs must be at least 1, got 0

    Raises:
      ValueError: naming the field, `minimum` and `value`.
    """
    if value is not None and value < minimum:
        raise ValueError(f"{field} must be at least {minimum}, got {value}")


def check_whole(field: str, value: object, minimum: int) -> None:
    """Checks that a value is an integer of Python or NumPy with at least a minimum.

    Raises:
      ValueError: naming the field, the rule and `value`.
    """
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise ValueError(f"{field} must be an integer, got {value!r}")
    check_at_least(field, int(value), minimum)


def check_installed(field: str, package: str, extra: str) -> None:
    """Checks that a package is installed, without importing it.

    Raises:
      ValueError: naming the field, the package and the command of `pip` with our extra.
    """
    if importlib.util.find_spec(package) is None:
        raise ValueError(
            f"{field} must have the package {package}, got none: pip install "
            f"'model_deploy[{extra}]'"
        )


def check_bool(field: str, value: object) -> None:
    """Checks that a value is True or False; 0 and 1 are refused.

    Raises:
      ValueError: naming the field, the rule and `value`.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{field} must be True or False, got {value!r}")


def check_choice(field: str, name: object, names: Collection[str]) -> None:
    """Checks that a value is one of several names.

    Raises:
      ValueError: naming the field, the valid names and `name`.
    """
    if name not in list[object](names):
        raise ValueError(f"{field} must be one of {', '.join(names)}, got {name!r}")
