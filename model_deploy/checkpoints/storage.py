"""`Storage`: what becomes of a run whose files cannot be written, and who is told."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import tensorflow.compat.v1 as tf

from model_deploy.cluster import is_refusal
from model_deploy.commands import NOT_SAVED, line_of, tell

# Seconds between two lines about files that cannot be written, and between two tries.
EVERY_SECS = 60.0
# Errors about another process of the cluster, see `is_lost_connection`.
OF_OTHERS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.FailedPreconditionError,
)


class NotSavedError(OSError):
    """The last steps of a run are lost: they were made, and could not be saved.

    Attributes:
      exit_code: the exit status of a command that ends by this error.
    """

    exit_code = NOT_SAVED


class Storage:
    """Knows which files of a run cannot be written, and says so: at first, then once a minute.

    Files may be written in several threads.

    Args:
      say: takes lines.
      clock: returns the time in seconds.
    """

    def __init__(
        self,
        say: Callable[[str], None] = tell,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[str, float] = {}  # of what cannot be written
        self._tried: dict[str, float] = {}
        self._reasons: dict[str, str] = {}
        self._said = 0.0

    @contextlib.contextmanager
    def trying(self, what: str) -> Iterator[None]:
        """Notes whether a `with` block can write; an error of files is told, and not raised.

        Args:
          what: what the block writes, in words.
        """
        try:
            yield
        except (OSError, tf.errors.OpError) as error:
            if is_lost_connection(error) or isinstance(error, ConnectionError):
                raise
            self._failed(what, reason_of(error))
        else:
            self._worked(what)

    def fails(self, what: str) -> bool:
        """Whether the last try to write something has failed."""
        return what in self._since

    def reason(self, what: str) -> str:
        """Returns why the last failed try to write something has failed; '' without one."""
        return self._reasons.get(what, "")

    def is_overdue(self, what: str) -> bool:
        """Whether it is time to try again what could not be written."""
        return what in self._since and self._clock() - self._tried[what] >= EVERY_SECS

    def _failed(self, what: str, reason: str) -> None:
        with self._lock:
            now = self._tried[what] = self._clock()
            self._reasons[what] = reason
            if what not in self._since:
                self._since[what] = now
                self._say(f"warning: {what}: {reason}; training goes on, it is tried again")
                self._said = now
            elif now - self._said >= EVERY_SECS:
                secs = now - min(self._since.values())
                names = ", ".join(sorted(self._since))
                self._say(f"warning: for {secs:.0f} s not written: {names}; {what}: {reason}")
                self._said = now

    def _worked(self, what: str) -> None:
        with self._lock:
            since = self._since.pop(what, None)
            if since is not None:
                self._say(f"{what}: written again, after {self._clock() - since:.0f} s")


def is_lost_connection(error: BaseException) -> bool:
    """Whether an error says that a process of the cluster is lost or was restarted.

    A session that is closed while it runs raises `CancelledError`; a restarted parameter server has
    lost its variables, which raises `FailedPreconditionError`.
    """
    return isinstance(error, OF_OTHERS) and not is_refusal(error)


def is_of_file(error: BaseException, path: str) -> bool:
    """Whether an error comes from the file system: TensorFlow then names the file.

    A mount that is gone, for one, raises `FailedPreconditionError`, as a lost server does.
    """
    return isinstance(error, OSError) or path in str(error)


def reason_of(error: BaseException, path: str = "") -> str:
    """Returns what an error says, in a line.

    Args:
      error: the error.
      path: path of a file; TensorFlow says `<path>...; <reason>` in one of many lines.
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = error.message if isinstance(error, tf.errors.OpError) else str(error)
    lines = str(text).strip().split("\n")
    of_file = [line.rpartition("; ")[2] for line in lines if path and path in line]
    return of_file[0] if of_file else line_of(error)
