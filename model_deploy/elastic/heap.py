"""The heap of a worker's process: memory that worlds no longer need goes back to the system."""

import contextlib
import ctypes
import gc
import threading
from collections.abc import Callable, Iterator

# Seconds until a world has made its first steps, for which TensorFlow rewrites its graph.
_BEGUN_SECS = 10.0


def give_back() -> None:
    """Returns memory that is free to the system; glibc by itself may keep it for hours."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextlib.contextmanager
def giving_back() -> Iterator[Callable[[], None]]:
    """Frees and gives back, in a `with` block for a world, what was needed before its steps.

    Yields a function to call when the world begins: the garbage, such as the graph of the world
    before, is collected some seconds later, in a thread, as others may wait for this world to
    begin, and a collection takes a quarter of a second.
    """
    timer = threading.Timer(_BEGUN_SECS, _free)
    timer.daemon = True

    def begin() -> None:
        if timer.ident is None:  # a world may have several sessions
            timer.start()

    try:
        yield begin
    finally:
        timer.cancel()


def _free() -> None:
    gc.collect()
    give_back()
