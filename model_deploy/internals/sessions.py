"""Calls of a session that Python has no public name for; seen in TensorFlow 2.16 to 2.21."""

from collections.abc import Callable
from typing import Any

from tensorflow.core.protobuf import config_pb2


def inline_callable(session: Any, fetch: Any) -> Callable[[], Any]:
    """A function that fetches a tensor in the thread that calls it.

    What runs is looked up once, here, and not by the names of feeds and fetches in each call,
    which takes some 10 us.  The graph is optimized once more for it.  C++ calls it
    `Session::MakeCallable`; it is not what `Session.make_callable` gives.

    Wraps `Session._make_callable_from_options`.

    Args:
      session: a `tf.Session` of this process; servers do not offer it.
      fetch: a tensor of any shape.

    Returns:
      A function that gives its value, a NumPy array of that shape.
    """
    options = config_pb2.CallableOptions(fetch=[fetch.name])
    options.run_options.inter_op_thread_pool = -1
    call = session._make_callable_from_options(options)
    return lambda: call()[0]
