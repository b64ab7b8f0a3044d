"""How long sessions wait for those that initialize variables; TensorFlow 2.16 to 2.21."""

import contextlib
import contextvars
import functools
from typing import Any

from tensorflow.python.training import session_manager

from model_deploy.internals.replacing import Replace, Replacements

_poll_secs: contextvars.ContextVar[float | None] = contextvars.ContextVar(
    "seconds between looks", default=None
)


def looking_for_variables_every(secs: float) -> contextlib.AbstractContextManager[None]:
    """A `with` block in which sessions of workers look that often whether the chief has begun.

    By default a `SessionManager` looks every 30 seconds, and `MonitoredTrainingSession` has no
    argument for that.  Overrides `SessionManager.__init__`.
    """
    return _replacements.in_place(_poll_secs, secs)


def _replace_all(replace: Replace) -> None:
    replace(session_manager.SessionManager, "__init__", _polling)


def _polling(original: Any) -> Any:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        secs = _poll_secs.get()
        if secs is not None:
            kwargs.setdefault("recovery_wait_secs", secs)
        original(self, *args, **kwargs)

    return init


_replacements = Replacements(_replace_all)
