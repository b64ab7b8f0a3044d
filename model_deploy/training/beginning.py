"""When this process began."""

import os
import sys
import time


class Beginning:
    """Says from when on the time of this process belongs to a run.

    To the first run all of the process's time belongs, imports included; to later runs the time
    from when they ask.  In an interactive process, whose user may have done anything before, no run
    has the time before it asks.
    """

    def __init__(self) -> None:
        self._is_taken = False

    def take(self) -> float:
        """Returns the time from which on a new run has this process: seconds since the epoch."""
        now = time.time()
        if self._is_taken or hasattr(sys, "ps1") or "ipykernel" in sys.modules:
            return now
        self._is_taken = True
        return now - process_age()


def process_age() -> float:
    """Returns the seconds since this process was started; 0 where the system does not tell."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            # The name of the program, in brackets, may hold anything.
            fields = file.read().rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # proc(5), field 22: since boot
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


own_beginning = Beginning()
