"""`pytest -p model_deploy.tf1.pytest_plugin` runs the tests of an old program."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.one_mode]

_TESTS = """
import tensorflow as tf
import numpy as np
from helper import double
from preprocessing import preprocessing_factory

slim = tf.contrib.slim
flags = tf.app.flags
flags.DEFINE_integer('size', 3, 'A flag.')


class Tests(tf.test.TestCase):

  def testRight(self):
    self.assertEquals(flags.FLAGS.size, 3)
    with self.test_session():
      self.assertItemsEqual(double(tf.constant([1, 2])).eval().tolist(), [4, 2])
      self.assertTrue(tf.placeholder(tf.float32, [None]).shape[0].value == None)

  def testKind(self):
    self.assertEqual(tf.get_variable('v', []).op.type, 'KIND')

  def testWrong(self):
    self.assertEquals(np.int(1), 2)


if __name__ == '__main__':
  tf.test.main()
"""


@pytest.mark.parametrize(
    ("options", "kind"), [([], "VariableV2"), (["--resource_variables"], "VarHandleOp")]
)
def test_tests_of_a_program(options, kind, write, run_python):
    """They see TensorFlow 1, pass and fail as they should, and are told what they got."""
    folder = write(
        {
            "program/sums_test.py": _TESTS.replace("KIND", kind),
            "more/helper.py": "import tensorflow as tf\ndouble = lambda x: tf.to_int32(x) * 2\n",
        }
    )
    status, log = run_python(
        *("-m", "pytest", "-p", "model_deploy.tf1.pytest_plugin", "-q", "-p", "no:cacheprovider"),
        *("--rootdir", ".", f"--tf1_path={folder / 'more'}", *options, "sums_test.py"),
        cwd=folder / "program",
    )
    assert status == 1, log
    # TensorFlow's test case has a test of its own, which is skipped.
    assert "1 failed, 2 passed" in log
    assert "1 != 2" in log
    assert "model_deploy.tf1 supplied preprocessing.preprocessing_factory" in log.splitlines()
