"""`StandStill`: notices that this process was stopped for a while, or its machine asleep."""

import math
import threading
import time

# Seconds by which a wait may end late in a process that runs, on a busy machine.
_LATE_SECS = 2.0


class StandStill:
    """Waits between two looks at a step, and notices when the process stood still between them.

    A step that lasts because of that waits for nobody, so its time counts from then on.

    Attributes:
      over_at: when the process last went on after standing still, by `time.monotonic`.
    """

    def __init__(self) -> None:
        self.over_at = -math.inf

    def wait(self, event: threading.Event, secs: float) -> bool:
        """Waits at most `secs` seconds for an event; returns whether it is set."""
        due = time.monotonic() + secs
        is_set = event.wait(secs)
        now = time.monotonic()
        if now > due + _LATE_SECS:
            self.over_at = now
        return is_set
