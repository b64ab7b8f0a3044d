"""Memory of the test process: what tests leave behind is freed before it is much.

A graph and its session are cycles of Python objects, which live until the garbage collector finds
them; what a session has allocated lives as long.  TensorFlow itself keeps graphs with custom
gradients.
"""

import gc
import os
import warnings

from model_deploy import internals
from model_deploy.elastic import heap

# Small beside what a process takes, and large enough to be rare.
_GROWTH_BYTES = 150 << 20
_freed_at = 0


def in_use():
    """Bytes of memory that the process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def free_what_is_done():
    """Collects graphs and sessions, if the process has grown."""
    global _freed_at  # noqa: PLW0603 - of the process, as its memory is
    if in_use() - _freed_at < _GROWTH_BYTES:
        return
    internals.forget_custom_gradients()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of files and sockets, about which their own tests care
        gc.collect()
    heap.give_back()
    _freed_at = in_use()
