"""`StepRunner`: makes steps, and lets hooks take part in them."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.cluster import run_unless_refused, run_until_closed
from model_deploy.training.steps.call import StepCall
from model_deploy.training.steps.report import StepContext, StepReport, checked_report
from model_deploy.training.steps.rest import RestOfSteps
from model_deploy.verification import Verification


class HookCalls:
    """Calls the hooks that take part in a step, and collects what they want to fetch.

    Args:
      hooks: session run hooks.  A hook with a method `due(step)` takes part only in steps for which
        it returns True; steps are numbered as in `StepReport`.

    Attributes:
      stop_requested: whether a hook has asked to stop.
    """

    def __init__(self, hooks: Sequence[Any]) -> None:
        self._always = [hook for hook in hooks if not hasattr(hook, "due")]
        self._asked = [hook for hook in hooks if hasattr(hook, "due")]
        self._order = {id(hook): i for i, hook in enumerate(hooks)}
        self._hooks: list[Any] = []
        self._requests: list[Any] = []
        self.stop_requested = False

    def choose(self, step: int) -> bool:
        """Selects the hooks of the next step; returns whether there are any."""
        self._hooks = self._always + [hook for hook in self._asked if hook.due(step)]
        return bool(self._hooks)

    def before(self, context: StepContext) -> dict[str, Any]:
        """Calls `before_run`; returns what hooks want to fetch: tensors of any shapes."""
        self._hooks.sort(key=lambda hook: self._order[id(hook)])
        nothing = tf.train.SessionRunArgs(None)
        self._requests = [hook.before_run(context) or nothing for hook in self._hooks]
        fetches = {str(i): each.fetches for i, each in enumerate(self._requests)}
        return {key: each for key, each in fetches.items() if each is not None}

    def feeds_and_options(self) -> tuple[dict[Any, Any], Any]:
        """Returns what hooks want to feed, and their `tf.RunOptions`."""
        feeds: dict[Any, Any] = {}
        options = tf.RunOptions()
        for request in self._requests:
            feeds.update(request.feed_dict or {})
            if request.options is not None:
                options.MergeFrom(request.options)
        return feeds, options

    def after(self, context: StepContext, values: dict[str, Any], metadata: Any) -> None:
        """Calls `after_run` with the values of the tensors that `before` returned."""
        for i, (hook, request) in enumerate(zip(self._hooks, self._requests, strict=True)):
            result = values.get(str(i))
            hook.after_run(context, tf.train.SessionRunValues(result, request.options, metadata))
        self.stop_requested = self.stop_requested or context.stop_requested


class StepRunner:
    """Makes steps by callables that are made once, which halves the cost of a small step.

    Args:
      session: the session.
      report: the result of `report_op`, a float64 vector.
      hooks: see `HookCalls`.
      in_step: called with True before each step and with False after it.
      verification: makes the steps that are due twice; or None.
      rest: does what steps leave to the next one; or None.  Then the report has `Rest.asked` at its
        end, and hooks see the variables as they are after their step.
      repeats: whether a step is made again at once if TensorFlow has refused it, for which its ops
        must be on the server of this process; not one that is made twice.
    """

    def __init__(
        self,
        session: Any,
        report: Any,
        hooks: Sequence[Any],
        in_step: Callable[[bool], None] = lambda running: None,
        *,
        verification: Verification | None = None,
        rest: RestOfSteps | None = None,
        repeats: bool = False,
    ) -> None:
        self._rest = rest
        self._repeats = repeats
        self._session = session
        self._report = report
        self._in_step = in_step
        self._verification = verification
        self._plain = StepCall(session, report)
        self._calls = HookCalls(hooks)
        self._is_first = True
        self._callables: dict[tuple[object, ...], tuple[Any, Any]] = {}

    @property
    def stop_requested(self) -> bool:
        """Whether a hook has asked to stop."""
        return self._calls.stop_requested

    def run(self, step: int) -> StepReport:
        """Makes step number `step`, or a later one if others make steps as well.

        Raises:
          NonFiniteLoss: if the loss is not finite; hooks are not told of such a step.
          CorruptionError: if the step is made twice, and gives two results.
        """
        verification = self._verification
        if verification is not None and not verification.due(step):
            verification = None
        takes_part = self._calls.choose(step)
        if self._rest is not None and takes_part:
            self._rest.ask()
        if not takes_part and verification is None:
            self._in_step(True)
            found = self._settled(self._call(self._plain))
            self._in_step(False)
            return checked_report(found)
        context = StepContext(tf.train.SessionRunArgs(self._report), self._session)
        fetches = {"report": self._report, **self._calls.before(context)}
        metadata = tf.RunMetadata()
        self._in_step(True)
        fetch = functools.partial(self._fetch, fetches, metadata, step, verification)
        values = self._call(fetch, repeats=verification is None)
        values["report"] = self._settled(values["report"])
        self._in_step(False)
        context.report = checked_report(values["report"])
        self._calls.after(context, values, metadata)
        return context.report

    def _call(self, call: Callable[[], Any], *, repeats: bool = True) -> Any:
        """Makes a step; the first may wait in a place where closing the session does not end it."""
        made = functools.partial(run_unless_refused, call) if self._repeats and repeats else call
        if self._is_first:
            self._is_first = False
            return run_until_closed(self._session, made)
        return made()

    def _settled(self, values: Any) -> Any:
        """Returns the report of a step, after its rest where a replica has asked for that."""
        return values if self._rest is None else self._rest.after_step(values)

    def close(self) -> None:
        """Does nothing; `CloneThreads` needs it."""

    def _fetch(
        self, fetches: dict[str, Any], metadata: Any, step: int, verification: Verification | None
    ) -> Any:
        feeds, options = self._calls.feeds_and_options()
        if verification is not None:
            return verification.make(
                self._session, step, fetches, feeds, options=options, metadata=metadata
            )
        if feeds or options.ByteSize():
            return self._session.run(fetches, feeds or None, options, metadata)
        # The same tensors may be fetched for other hooks.
        key = (*sorted(fetches), *map(id, tf.nest.flatten(fetches)))
        if key not in self._callables:
            # The fetches are kept, so that no other object gets their ids.
            self._callables[key] = (self._session.make_callable(fetches), fetches)
        return self._callables[key][0]()
