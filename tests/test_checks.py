"""Checks of single values: what passes, and what the errors say."""

import numpy as np
import pytest

from model_deploy.checks import check_at_least, check_choice, check_whole

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize("value", [1, 2.5, None], ids=["least", "more", "not given"])
def test_at_least_accepts(value):
    """The least value passes, and so does a setting that is not given."""
    check_at_least("size", value, 1)


def test_at_least_rejects():
    """A smaller number is rejected with its field, the least value and itself."""
    with pytest.raises(ValueError, match=r"^size must be at least 1, got 0\.5$"):
        check_at_least("size", 0.5, 1)


@pytest.mark.parametrize("value", [0, np.int64(3)], ids=["python", "numpy"])
def test_whole_accepts(value):
    """Whole numbers may be those of NumPy."""
    check_whole("task", value, 0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(-1, "task must be at least 0, got -1", id="small"),
        pytest.param(1.0, "task must be an integer, got 1.0", id="float"),
        pytest.param(True, "task must be an integer, got True", id="bool"),
        pytest.param("1", "task must be an integer, got '1'", id="text"),
        pytest.param(None, "task must be an integer, got None", id="none"),
    ],
)
def test_whole_rejects(value, message):
    """What is not a whole number, or too small a one, is rejected as it was given."""
    with pytest.raises(ValueError, match=f"^{message}$"):
        check_whole("task", value, 0)


def test_choice():
    """A name that is none of the valid ones is rejected with all of them."""
    check_choice("kind", "a", ["a", "b"])
    with pytest.raises(ValueError, match="kind must be one of a, b, got 'c'"):
        check_choice("kind", "c", ["a", "b"])
