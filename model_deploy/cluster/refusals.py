"""`run_unless_refused`: TensorFlow now and then refuses a step for no fault of its caller."""

import re
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

_REFUSAL = re.compile(r"The same \w+ \(\w+\) request was received twice")


def is_refusal(error: Exception) -> bool:
    """Whether TensorFlow took a step for one that it had already run.

    Each request between servers has a random number, by which they notice repetitions.
    The numbers are drawn from only 2^32 sequences, a new one for each step, and 100,000
    are remembered: about one in 43,000 steps bears the number of another one.
    """
    return isinstance(error, tf.errors.AbortedError) and bool(_REFUSAL.search(error.message))


def run_unless_refused(run: Callable[[], Any]) -> Any:
    """Calls `run`, again as long as TensorFlow refuses the step; returns its result.

    Use it for what may run twice: of a step on several servers a part may have been run.
    """
    while True:
        try:
            return run()
        except tf.errors.AbortedError as error:
            if not is_refusal(error):
                raise
