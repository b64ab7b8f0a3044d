"""`tf.test.TestCase` with the names of Python 2's `unittest`."""

import unittest

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1 import names

pytestmark = pytest.mark.one_mode


def _test_case():
    """The class; a name in this file would make pytest run it."""
    return names.find("tensorflow.test").TestCase


@pytest.mark.parametrize(
    ("method", "good", "bad"),
    [
        ("assertEquals", (1, 1), (1, 2)),
        ("assertNotEquals", (1, 2), (1, 1)),
        ("assertAlmostEquals", (1.0, 1.0 + 1e-9), (1.0, 1.1)),
        ("assertNotAlmostEquals", (1.0, 1.1), (1.0, 1.0)),
        ("assertRegexpMatches", ("abc", "b."), ("abc", "^b")),
        ("assertNotRegexpMatches", ("abc", "^b"), ("abc", "b.")),
        ("assertItemsEqual", ([1, 2], [2, 1]), ([1, 1], [1, 2])),
        ("assert_", (True,), (False,)),
        ("failUnless", (True,), (False,)),
        ("failIf", (False,), (True,)),
        ("failUnlessEqual", (1, 1), (1, 2)),
        ("assertDictContainsSubset", ({"a": 1}, {"a": 1, "b": 2}), ({"a": 2}, {"a": 1})),
    ],
)
def test_old_names(method, good, bad):
    """Each passes and fails as it did."""
    call = getattr(_test_case()(), method)
    call(*good)
    with pytest.raises(AssertionError):
        call(*bad)


def test_raises_with_a_pattern():
    """`assertRaisesRegexp` looks for its pattern in the message."""
    find = _test_case()().assertRaisesRegexp
    find(ValueError, "inv.lid", int, "invalid")
    with pytest.raises(AssertionError, match="does not match"):
        find(ValueError, "^other", int, "invalid")


def test_sessions_of_tests():
    """`test_session` and the comparisons of TensorFlow's test case work; results are reported."""
    seen = []

    def right(self):
        with self.test_session() as session:
            seen.append(session.run(tf.constant([1, 2]) + 1))
            self.assertAllEqual(seen[0], [2, 3])
            self.assertAllClose(tf.constant(0.5).eval(), 0.5)

    def wrong(self):
        self.assertItemsEqual([1], [2])

    tests = type("Sums", (_test_case(),), {"testRight": right, "testWrong": wrong})
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(tests).run(result)
    assert [np.asarray(each).tolist() for each in seen] == [[2, 3]]
    assert (result.errors, len(result.failures)) == ([], 1)
    assert "testWrong" in str(result.failures[0][0])


def test_other_names_of_the_module():
    """`tf.test` has the rest of TensorFlow's, and `mock`."""
    module = names.find("tensorflow.test")
    assert module.is_gpu_available is tf.test.is_gpu_available
    assert module.mock.Mock is not None
    assert issubclass(_test_case(), tf.test.TestCase)
