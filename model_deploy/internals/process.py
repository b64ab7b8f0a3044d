"""Process-wide settings, fast session calls, single records; seen in TensorFlow 2.16 to 2.21."""

import os
from collections.abc import Callable
from typing import Any

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework import config, errors
from tensorflow.python.lib.io import tf_record
from tensorflow.python.util import deprecation


def ops_are_deterministic() -> bool:
    """Whether the program has called `tf.config.experimental.enable_op_determinism()`.

    Wraps `config.is_op_determinism_enabled`.
    """
    return bool(config.is_op_determinism_enabled())


def hide_deprecations() -> None:
    """Stops TensorFlow's warnings about deprecated names in this process.

    A program written for TensorFlow 1 would print many of them.

    Wraps `deprecation._PRINT_DEPRECATION_WARNINGS`.
    """
    deprecation._PRINT_DEPRECATION_WARNINGS = False


def inline_callable(session: Any, fetch: Any) -> Callable[[], Any]:
    """Returns a function that fetches a tensor in the calling thread.

    The fetch is resolved once, here, and not in each call, which takes some 10 us; the graph is
    optimized once more for it.  It is C++'s `Session::MakeCallable`, not Python's
    `Session.make_callable`.

    Wraps `Session._make_callable_from_options`.

    Args:
      session: a `tf.Session` of this process; servers do not offer it.
      fetch: a tensor of any shape.

    Returns:
      A function that returns the tensor's value, a NumPy array.
    """
    options = config_pb2.CallableOptions(fetch=[fetch.name])
    options.run_options.inter_op_thread_pool = -1
    call = session._make_callable_from_options(options)
    return lambda: call()[0]


def record_at(path: str, offset: int) -> bytes | None:
    """Returns the data of the record at an offset of a TFRecord file, on any file system.

    Wraps `tf_record.tf_record_random_reader`, which is unbuffered.

    Args:
      path: the file.
      offset: byte offset of the record's length field.

    Returns:
      The data; None at the end of the file, or for a wrong checksum.

    Raises:
      tf.errors.OpError: if the file cannot be read.
    """
    try:
        data: bytes = tf_record.tf_record_random_reader(os.fsencode(path)).read(offset)[0]
    except (errors.DataLossError, IndexError):
        return None
    return data
