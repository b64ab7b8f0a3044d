"""Which TensorFlow a process of the tests is: today's in graph mode, or one as it was in version 1.

`pytest --v1` says so in the environment, for the programs that tests start.
"""

import os

import tensorflow.compat.v1 as tf

_V1 = "MODEL_DEPLOY_TESTS_V1"


def set_for_programs(is_v1):
    """Lets the programs that this process starts be as it is."""
    os.environ[_V1] = "1" if is_v1 else ""


def enter():
    """Makes this process as the tests are: call it before anything is built."""
    tf.disable_eager_execution()
    if os.environ.get(_V1):
        tf.disable_v2_behavior()
