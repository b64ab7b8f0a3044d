"""`tf.test.TestCase` with the names that Python and TensorFlow have dropped since."""

import unittest
from typing import Any

import tensorflow.compat.v1 as tf


class TestCase(tf.test.TestCase):
    """TensorFlow's test case, for tests that were written for Python 2 and TensorFlow 1."""

    assertEquals = unittest.TestCase.assertEqual  # noqa: N815 - the names of `unittest`
    assertNotEquals = unittest.TestCase.assertNotEqual  # noqa: N815
    assertAlmostEquals = unittest.TestCase.assertAlmostEqual  # noqa: N815
    assertNotAlmostEquals = unittest.TestCase.assertNotAlmostEqual  # noqa: N815
    assertRaisesRegexp = unittest.TestCase.assertRaisesRegex  # noqa: N815
    assertRegexpMatches = unittest.TestCase.assertRegex  # noqa: N815
    assertNotRegexpMatches = unittest.TestCase.assertNotRegex  # noqa: N815
    assertItemsEqual = unittest.TestCase.assertCountEqual  # noqa: N815
    assert_ = unittest.TestCase.assertTrue
    failUnless = unittest.TestCase.assertTrue  # noqa: N815
    failIf = unittest.TestCase.assertFalse  # noqa: N815
    failUnlessEqual = unittest.TestCase.assertEqual  # noqa: N815

    def assertDictContainsSubset(  # noqa: N802
        self, expected: dict[Any, Any], actual: dict[Any, Any], msg: str | None = None
    ) -> None:
        """Fails unless `actual` has all items of `expected`."""
        merged = {**actual, **expected}
        self.assertEqual(merged, dict(actual), msg)  # noqa: PT009 - this is `unittest`
