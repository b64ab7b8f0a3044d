"""NumPy's names that are gone, for programs that use them."""

import numpy as np
import pytest

from model_deploy.tf1 import numpy_names
from model_deploy.tf1.dropped import old_module

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize("name", numpy_names._TYPES)
def test_types_of_python(name):
    """`np.int` and the like are Python's own types, as they were."""
    assert getattr(old_module("numpy"), name) is numpy_names._TYPES[name]
    assert np.zeros([1], getattr(old_module("numpy"), name)).shape == (1,)


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("alltrue", [True, False], False),
        ("rank", [[1, 2]], 2),
        ("asscalar", np.array([3]), 3),
        ("cumproduct", [2, 3], [2, 6]),
        ("float_", 2, 2.0),
        ("product", [2, 3], 6),
        ("sometrue", [True, False], True),
        ("string_", b"a", b"a"),
        ("unicode_", "a", "a"),
    ],
)
def test_functions_under_their_old_names(name, argument, expected):
    """What was renamed does what it did."""
    np.testing.assert_array_equal(getattr(old_module("numpy"), name)(argument), expected)


def test_other_names_are_numpys():
    """All else is NumPy's own; NumPy itself is left as it is."""
    old = old_module("numpy")
    assert old.zeros is np.zeros
    assert old.random is np.random
    assert old.__version__ == np.__version__
    assert (old.Inf, np.isnan(old.NaN)) == (np.inf, True)
    assert old.in1d([[1], [2]], [2]).tolist() == [False, True]
    assert old_module("numpy") is old
    for name in ("float", "int", "asscalar"):
        assert name not in vars(np)
    assert not hasattr(old, "never")
