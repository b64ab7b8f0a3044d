"""Refused steps: TensorFlow now and then refuses a step for no fault of its caller."""

import re
from collections.abc import Callable
from typing import Any, NoReturn

import tensorflow.compat.v1 as tf

from model_deploy.commands import REFUSED, tell

_REFUSAL = re.compile(r"The same \w+ \(\w+\) request was received twice")
# Of several parts' errors TensorFlow names one, such as a cancellation, and lists the others.
_LISTED = re.compile(rf"^ABORTED: From \S+\s+{_REFUSAL.pattern}", re.MULTILINE)
# The call by which a worker asks another one for its part of a step by all-reduce.
_ASKED = "while calling /tensorflow.WorkerService/RecvBuf"


def is_refusal(error: Exception | None) -> bool:
    """Whether an error says that TensorFlow took a step for an earlier step.

    Servers notice requests that come twice by a random number in each. But a step draws
    its numbers from a generator of its own, with one of 2^32 seeds, and a server remembers
    100,000 of them: about one step in 43,000 bears the number of an earlier one. Of
    243,981 steps without any fault TensorFlow 2.21 refused 5.
    """
    if isinstance(error, tf.errors.AbortedError):
        return bool(_REFUSAL.search(error.message))
    return isinstance(error, tf.errors.OpError) and bool(_LISTED.search(error.message))


def is_given_up(error: Exception) -> bool:
    """Whether an error says that another worker has ended its part of a step by all-reduce early.

    TensorFlow may have refused that part, or an op of it has failed: only the other worker knows,
    and a third one that waits for both may get no error at all.  One that is lost is another error.
    """
    kinds = tf.errors.InternalError, tf.errors.CancelledError
    return isinstance(error, kinds) and _ASKED in error.message


def end_after_refusal(error: Exception, step: str) -> NoReturn:
    """Ends this process of a run by all-reduce, in which TensorFlow has refused a part of a step.

    Some workers have begun the step, and wait for a part that will not come, others have given it
    up. Nothing but a new TensorFlow server in each of them ends that: their collective ops fail
    from then on.

    Args:
      error: the error of the step.
      step: names the step, or another worker's part of it.

    Raises:
      SystemExit: with 75, `EX_TEMPFAIL`: started again, the run goes on.
    """
    tell(
        f"error: TensorFlow has refused {step}, as it does with one of 43,000: start all workers "
        "again, they go on from the newest checkpoint; elastic runs go on at once"
    )
    raise SystemExit(REFUSED) from error


def unsure_end() -> tf.errors.AbortedError:
    """An error in place of the end of the inputs, in a session in which a step was refused.

    TensorFlow then cancels this process's part of the step, and with it the iterator that the part
    may be reading: an iterator that prefetches says from then on that it has ended.
    """
    return tf.errors.AbortedError(
        None, None, "the inputs have ended after a refused step, which may have ended them"
    )


def run_unless_refused(run: Callable[[], Any], refused: Callable[[], Any] = lambda: None) -> Any:
    """Calls `run`, again as long as TensorFlow refuses the step; returns its result.

    Use it for ops that may run twice: of a refused step on several servers some may have run.
    Collective ops on the server of this process may: TensorFlow gives a step the number of the one
    that failed before it, for which the others wait. But a worker that has asked this one for its
    part before the step was refused gets an error, see `is_given_up`; then this one may wait until
    its session is closed, or the other worker ends.

    Args:
      run: runs the ops.
      refused: called after each refusal.
    """
    while True:
        try:
            return run()
        except tf.errors.OpError as error:
            if not is_refusal(error):
                raise
            refused()
