"""One step of training: what it reports, and how hooks take part in it."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.clones import collect_members
from model_deploy.deployment import DeployedModel


class StepReport(NamedTuple):
    """What every step says of itself.

    Attributes:
      step: number of the step, counted from 1.
      loss: the total loss, before the update.
      learning_rate: that of the update; NaN where `train` was not given any.
      wait_secs: seconds of waiting for data; NaN where `train` was not given any.
      first_bad: number of the first op whose value is not finite, see `NumericChecks`; -1
        if there is none or nobody looked.
      clone_losses: the losses of each clone's own `model_fn`.
    """

    step: int
    loss: float
    learning_rate: float
    wait_secs: float
    first_bad: int
    clone_losses: tuple[float, ...]


def report_op(
    model: DeployedModel, learning_rate: Any, wait_secs: Any, first_bad: Any = None
) -> Any:
    """An op that makes a step and gives its report, float64 [5 + clones].

    One small tensor is fetched in each step, as a fetch costs more than the ops here.

    Args:
      model: what `deploy` returned, with an optimizer.
      learning_rate: a scalar tensor or number, or None.
      wait_secs: a scalar tensor, or None.
      first_bad: an integer scalar tensor, or None.
    """
    unknown = tf.constant(math.nan, tf.float64)
    values = [unknown if value is None else value for value in (learning_rate, wait_secs)]
    values.append(tf.constant(-1) if first_bad is None else first_bad)
    losses = collect_members(tf.GraphKeys.LOSSES, model.clones).clones
    clone_losses = [tf.add_n(each) if each else unknown for each in losses]
    with tf.device(model.train_op.device), tf.control_dependencies([model.train_op]):
        step = tf.identity(tf.train.get_global_step())
        parts = [step, model.train_op, *values, *clone_losses]
        return tf.stack([tf.cast(part, tf.float64) for part in parts], name="step_report")


def read_report(values: Any) -> StepReport:
    """The report in the array that `report_op` gives."""
    step, loss, learning_rate, wait_secs, first_bad, *clone_losses = values.tolist()
    return StepReport(
        int(step), loss, learning_rate, wait_secs, int(first_bad), tuple(clone_losses)
    )


class StepContext(tf.train.SessionRunContext):
    """What hooks get in `before_run` and `after_run`.

    Attributes:
      report: in `after_run`, the `StepReport` of the step.
    """

    report: StepReport


class StepRunner:
    """Makes steps.  Callables are made once, which halves the cost of a small step.

    Args:
      session: where to run.
      report: what `report_op` returned.
      hooks: session run hooks.  One with a method `due(step)` is asked before each
        step, counted as in `StepReport`, and takes part only where it answers True;
        others take part in every step.
    """

    def __init__(self, session: Any, report: Any, hooks: Sequence[Any]) -> None:
        self._session = session
        self._report = report
        self._plain = session.make_callable(report)
        self._eager = [hook for hook in hooks if not hasattr(hook, "due")]
        self._asked = [hook for hook in hooks if hasattr(hook, "due")]
        self._order = {id(hook): i for i, hook in enumerate(hooks)}
        self._callables: dict[tuple[int, ...], tuple[Any, Any]] = {}
        self.stop_requested = False

    def run(self, step: int) -> StepReport:
        """Makes step number `step`, or, where others count too, one that comes later.

        Raises:
          NonFiniteLoss: if the loss is not finite; hooks do not see such a step.
        """
        hooks = self._eager + [hook for hook in self._asked if hook.due(step)]
        if not hooks:
            return self._checked(self._plain())
        hooks.sort(key=lambda hook: self._order[id(hook)])
        return self._run_with(hooks)

    def _run_with(self, hooks: Sequence[Any]) -> StepReport:
        context = StepContext(tf.train.SessionRunArgs(self._report), self._session)
        requests = [hook.before_run(context) or tf.train.SessionRunArgs(None) for hook in hooks]
        fetches = {
            str(i): each.fetches for i, each in enumerate(requests) if each.fetches is not None
        }
        metadata = tf.RunMetadata()
        values = self._fetch({"report": self._report, **fetches}, requests, metadata)
        context.report = self._checked(values["report"])
        for i, (hook, request) in enumerate(zip(hooks, requests, strict=True)):
            result = values.get(str(i))
            hook.after_run(context, tf.train.SessionRunValues(result, request.options, metadata))
        self.stop_requested = self.stop_requested or context.stop_requested
        return context.report

    def _fetch(self, fetches: dict[str, Any], requests: Sequence[Any], metadata: Any) -> Any:
        feeds: dict[Any, Any] = {}
        options = tf.RunOptions()
        for request in requests:
            feeds.update(request.feed_dict or {})
            if request.options is not None:
                options.MergeFrom(request.options)
        if feeds or options.ByteSize():
            return self._session.run(fetches, feeds or None, options, metadata)
        key = tuple(id(each) for each in tf.nest.flatten(fetches))
        if key not in self._callables:
            # The fetches are kept, so that no other object gets their ids.
            self._callables[key] = (self._session.make_callable(fetches), fetches)
        return self._callables[key][0]()

    @staticmethod
    def _checked(values: Any) -> StepReport:
        report = read_report(values)
        if not math.isfinite(report.loss) or report.first_bad >= 0:
            raise NonFiniteLoss(report)
        return report


class NonFiniteLoss(FloatingPointError):  # noqa: N818 - reads better where it is raised
    """The loss of a step is NaN or infinite; the variables are lost.

    Attributes:
      report: that of the step.
    """

    def __init__(self, report: StepReport) -> None:
        self.report = report
        super().__init__(describe_loss(report))


def describe_loss(report: StepReport) -> str:
    """One line that names the step, the clones and the learning rate of a bad loss."""
    bad = [i for i, loss in enumerate(report.clone_losses) if not math.isfinite(loss)]
    where = ""
    if len(report.clone_losses) > 1:
        where = f", in clone {', '.join(map(str, bad))}" if bad else ", in no clone's own losses"
    rate = "" if math.isnan(report.learning_rate) else f", learning rate {report.learning_rate:g}"
    return f"the loss must be finite, got {report.loss} at step {report.step}{where}{rate}"
