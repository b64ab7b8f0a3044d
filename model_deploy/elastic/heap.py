"""The heap of a worker's process: memory that worlds no longer need goes back to the system."""

import ctypes
import gc
import threading

# Seconds until a world has made its first steps, for which TensorFlow rewrites its graph.
_BEGUN_SECS = 10.0


def give_back() -> None:
    """Returns memory that is free to the system; glibc by itself may keep it for hours."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def give_back_soon() -> None:
    """Does so when a world that begins now has made its first steps."""
    timer = threading.Timer(_BEGUN_SECS, give_back)
    timer.daemon = True
    timer.start()


def free_world() -> None:
    """Frees the graph of a world that is over, to which nothing refers but itself."""
    gc.collect()
