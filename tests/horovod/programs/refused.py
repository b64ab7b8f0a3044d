"""`mnist.py`, of which TensorFlow refuses worker 1 a step once, as it does with one of 43,000."""

import json
import os
from pathlib import Path

import mnist
import tensorflow as tf

ERROR = "The same RunGraph (Worker) request was received twice"


def refusing(call, mark, number=40):
    """The method `call`, of which one call fails, for which it makes the file `mark`."""
    numbers = iter(range(number + 1))

    def refused_once(*arguments):
        if next(numbers, None) == number and not mark.exists():
            mark.touch()
            raise tf.errors.AbortedError(None, None, ERROR)
        return call(*arguments)

    return refused_once


if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker":
    session = next(each for each in tf.Session.__mro__ if "_do_call" in vars(each))
    session._do_call = refusing(session._do_call, Path(os.environ["REFUSED_MARK"]))
tf.app.run(mnist.main)
