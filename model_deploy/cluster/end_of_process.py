"""`end_process`: ends a process that may still wait for answers of others."""

import os
import sys
import threading
from typing import NoReturn

# At its end this process waits for missing answers: most come when other processes end.
AT_EXIT_SECS = 3.0
# Name of the threads that close sessions.
CLOSING = "close_session"


def end_process(code: int) -> NoReturn:
    """Ends the process, as `sys.exit` does, without the risk that a late answer aborts it.

    A thread of `close_session` that still waits for an answer gets `AT_EXIT_SECS`. If the answer
    does not come, the process ends at once, as an answer while Python ends would abort it.

    Args:
      code: the exit status of the process.
    """
    closing = [thread for thread in threading.enumerate() if thread.name == CLOSING]
    for thread in closing:
        thread.join(AT_EXIT_SECS)
    if any(thread.is_alive() for thread in closing):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
